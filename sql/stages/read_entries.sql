-- The different entries of one column, and how many records have each; NULL if missing. They never leave the process. Equal texts
-- are read once.
SELECT {{entry}}(written) AS entry, CAST(sum(records) AS BIGINT) AS records
FROM (SELECT {{written}} AS written, sum({{times}}) AS records FROM {{table}} GROUP BY 1)
GROUP BY 1
ORDER BY 1;
