-- Postgres: the next records of a cursor.
FETCH {{records}} FROM {{cursor}};
