-- Counts about one categorical column, never a value. $declared: the categories that the policy lists; $filled: replaces missing
-- entries. Equal texts are read once.
SELECT
    coalesce(sum(records) FILTER (WHERE entry IS NULL), 0)                       AS missing,
    coalesce(sum(records) FILTER (WHERE NOT list_contains($declared, entry)), 0) AS undeclared,
    count(DISTINCT coalesce(entry, $filled))                                     AS different
FROM (
    SELECT {{entry}}(written) AS entry, records
    FROM (SELECT {{written}} AS written, sum({{times}}) AS records FROM {{table}} GROUP BY 1)
);
