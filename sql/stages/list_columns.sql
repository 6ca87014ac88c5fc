-- The tables of this release, and their columns in order. Views are not included, nor are generated columns: they may give a
-- different result for each query.
SELECT table_name, column_name
FROM duckdb_columns()
WHERE schema_name = current_schema() AND table_oid IN (SELECT table_oid FROM duckdb_tables() WHERE schema_name = current_schema())
  AND column_default IS NULL
ORDER BY table_name, column_index;
