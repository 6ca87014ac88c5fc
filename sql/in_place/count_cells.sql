-- The different cells of a column, ascending, and how many records have each. They never leave the vault.
SELECT {{column}}, count(*) AS {{times}} FROM delivered GROUP BY 1 ORDER BY 1 NULLS LAST;
