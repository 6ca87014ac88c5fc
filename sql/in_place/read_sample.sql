-- Postgres: the records whose numbers have the smallest hashes. Only the seed chooses them.
SELECT {{columns}} FROM {{records}} ORDER BY hashtextextended({{number}}, {{seed}}), {{number}} LIMIT {{count}};
