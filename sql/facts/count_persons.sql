-- Counts about the column that identifies the person of a record, for one of $parts parts of the persons. $allowed: records per
-- person and release.
SELECT
    coalesce(sum(records) FILTER (WHERE person IS NULL), 0)             AS missing,
    count(*) FILTER (WHERE person IS NOT NULL)                          AS persons,
    count(*) FILTER (WHERE person IS NOT NULL AND records > $allowed)   AS too_often
FROM (
    SELECT person, count(*) AS records
    FROM persons
    WHERE $parts = 1 OR hash(person) % $parts = $part
    GROUP BY 1
);
