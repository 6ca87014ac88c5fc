-- Of Postgres: the records whose numbers have the smallest hashes. The seed chooses them, and does nothing else.
SELECT {{columns}} FROM {{records}} ORDER BY hashtextextended({{number}}, {{seed}}), {{number}} LIMIT {{count}};
