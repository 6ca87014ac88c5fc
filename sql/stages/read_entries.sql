-- The different entries of one column, and how many records have each; NULL of those where it is missing. It never leaves the process.
SELECT {{entry}}({{column}}) AS entry, count(*) AS records FROM delivered GROUP BY 1 ORDER BY 1;
