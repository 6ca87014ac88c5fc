-- Entries that are missing, and entries that do not match $pattern.
SELECT
    count(*) FILTER (WHERE entry IS NULL)                               AS missing,
    count(*) FILTER (WHERE NOT regexp_full_match(entry, $pattern))      AS undeclared
FROM (SELECT {{entry}}({{column}}) AS entry FROM raw);
