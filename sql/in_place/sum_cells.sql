-- The different cells of a column, ascending, and how many records have each, from the counts of several parts. They never leave
-- the vault.
SELECT cells AS {{column}}, CAST(sum(times) AS BIGINT) AS {{times}} FROM delivered GROUP BY 1 ORDER BY 1 NULLS LAST;
