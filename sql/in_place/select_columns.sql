-- Postgres: some columns of these records.
SELECT {{columns}} FROM {{records}};
