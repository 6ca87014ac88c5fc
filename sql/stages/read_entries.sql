-- The different entries of one column, and how many records have each; NULL of those where it is missing. It never leaves the process.
-- What is written alike is read once.
SELECT {{entry}}(written) AS entry, CAST(sum(records) AS BIGINT) AS records
FROM (SELECT {{written}} AS written, sum({{times}}) AS records FROM {{table}} GROUP BY 1)
GROUP BY 1
ORDER BY 1;
