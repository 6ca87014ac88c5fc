-- Counts about one categorical column, never a value. $declared: the categories that the policy lists; $filled: for what is missing.
SELECT
    count(*) FILTER (WHERE entry IS NULL)                       AS missing,
    count(*) FILTER (WHERE NOT list_contains($declared, entry)) AS undeclared,
    count(DISTINCT coalesce(entry, $filled))                    AS different
FROM (SELECT {{entry}}({{column}}) AS entry FROM delivered);
