-- Of Postgres: what the column that tells releases apart has, and how it is written as text.
SELECT {{column}} AS {{delivered}}, {{column}}::text AS {{written}} FROM {{table}} GROUP BY 1, 2;
