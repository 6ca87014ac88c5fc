-- Whether this connection has the functions for hashes of many rows.
SELECT count(*) FROM duckdb_functions() WHERE function_name = 'people_many_after';
