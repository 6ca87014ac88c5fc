-- Persons are counted, so this table is no longer needed.
DROP TABLE persons;
