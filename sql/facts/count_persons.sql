-- Counts about the column that says whose record it is. $allowed: records per person and release.
SELECT
    coalesce(sum(records) FILTER (WHERE person IS NULL), 0)             AS missing,
    count(*) FILTER (WHERE person IS NOT NULL)                          AS persons,
    count(*) FILTER (WHERE person IS NOT NULL AND records > $allowed)   AS too_often
FROM (SELECT person_of({{entry}}({{column}})) AS person, count(*) AS records FROM delivered GROUP BY 1);
