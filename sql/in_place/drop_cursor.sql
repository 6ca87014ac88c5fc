-- Postgres: the sorted result is no longer needed.
CLOSE {{cursor}};
