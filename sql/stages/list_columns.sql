-- The tables of this release, and their columns in order.
SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = current_schema() ORDER BY table_name, column_index;
