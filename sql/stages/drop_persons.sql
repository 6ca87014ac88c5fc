-- They are counted, or hashed.
DROP TABLE persons;
