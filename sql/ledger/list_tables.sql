SELECT table_name FROM duckdb_tables();
