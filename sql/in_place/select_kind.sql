-- Postgres: the type of a column; none of its entries are read.
SELECT pg_typeof((SELECT {{column}} FROM {{table}} LIMIT 0))::text AS kind;
