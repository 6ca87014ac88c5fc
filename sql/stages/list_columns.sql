-- The tables of this release, and their columns in order. What is no table, as a view, is not of it, nor is a generated column: it
-- may tell something else each time that it is asked.
SELECT table_name, column_name
FROM duckdb_columns()
WHERE schema_name = current_schema() AND table_oid IN (SELECT table_oid FROM duckdb_tables() WHERE schema_name = current_schema())
  AND column_default IS NULL
ORDER BY table_name, column_index;
