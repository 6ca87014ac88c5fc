-- Postgres: the counts of tables in one reading. Each record has a cell in every table; the cells of all tables are numbered one
-- after the other. OFFSET 0: the groups of a record are computed once, not once for every table.
SELECT coalesce({{tables}}) AS cell, count(*) AS times
FROM (SELECT {{cells}} FROM (SELECT {{groups}} FROM {{records}} {{joins}} OFFSET 0) AS grouped) AS tabulated
GROUP BY GROUPING SETS ({{sets}});
