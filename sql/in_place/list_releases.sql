-- Of Postgres: what the column that tells releases apart has, and how it is written as text; texts are alike where their bytes are.
SELECT (array_agg({{column}}))[1] AS {{delivered}}, {{column}}::text COLLATE "C" AS {{written}} FROM {{table}} GROUP BY 2;
