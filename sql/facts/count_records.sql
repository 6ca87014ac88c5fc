SELECT count(*) AS records FROM raw;
