-- Postgres: a number above 0 if this is a table that stores all its records itself, each at a different position.
SELECT count(*) AS tables FROM pg_class WHERE oid = to_regclass($1) AND relkind IN ('r', 'm') AND NOT relhassubclass;
