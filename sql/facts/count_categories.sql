-- Counts about one categorical column, never a value. $declared: the categories that the policy lists.
SELECT
    count(*) FILTER (WHERE entry IS NULL)                       AS missing,
    count(*) FILTER (WHERE NOT list_contains($declared, entry)) AS undeclared,
    count(DISTINCT entry)                                       AS different
FROM (SELECT {{entry}}({{column}}) AS entry FROM raw);
