-- Postgres: the entries of the column that identifies releases, and how each is written as text; texts are equal if their bytes
-- are.
SELECT (array_agg({{column}}))[1] AS {{delivered}}, {{column}}::text COLLATE "C" AS {{written}} FROM {{table}} GROUP BY 2;
