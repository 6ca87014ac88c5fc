SELECT table_name FROM duckdb_tables() WHERE schema_name = current_schema();
