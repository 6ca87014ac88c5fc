-- The different cells of a column, ascending, and how many records have each.
SELECT {{column}}, count(*) AS {{times}} FROM {{records}} GROUP BY 1 ORDER BY 1 NULLS LAST;
