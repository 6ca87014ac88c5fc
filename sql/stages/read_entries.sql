-- The different entries of one column, and how many records have each; what is missing is left out. It never leaves the process.
SELECT {{entry}}({{column}}) AS entry, count(*) AS records FROM raw WHERE {{entry}}({{column}}) IS NOT NULL GROUP BY 1 ORDER BY 1;
