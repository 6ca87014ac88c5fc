-- They are counted.
DROP TABLE persons;
