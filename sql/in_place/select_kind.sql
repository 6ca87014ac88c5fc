-- Of Postgres: the type of a column, of which nothing is read.
SELECT pg_typeof((SELECT {{column}} FROM {{table}} LIMIT 0))::text AS kind;
