-- Of Postgres: a number above 0 if this is a table that has all its records itself: each lies at another place.
SELECT count(*) AS tables FROM pg_class WHERE oid = to_regclass($1) AND relkind IN ('r', 'm') AND NOT relhassubclass;
