-- A delivered DuckDB file reaches no other file, whatever its views and macros say; nothing in it can undo that.
SET enable_external_access = false;
SET lock_configuration = true;
