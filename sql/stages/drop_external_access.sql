-- From here on a delivered DuckDB file can reach no other file, through views or macros. It cannot be undone.
SET enable_external_access = false;
