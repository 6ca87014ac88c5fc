-- A delivered DuckDB file reaches no other file from here on, whatever its views and macros say. It cannot be undone.
SET enable_external_access = false;
