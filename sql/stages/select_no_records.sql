-- No record: only the names and types of a source table's columns.
SELECT * FROM {{table}} LIMIT 0;
