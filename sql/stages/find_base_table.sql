-- The base table of that name in a delivered DuckDB file, if it has one; without a schema it is in `main`.
SELECT 1 FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND lower(schema_name) = lower(coalesce(nullif($schema, ''), 'main')) AND lower(table_name) = lower($table);
