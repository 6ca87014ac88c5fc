-- They are counted, or hashed.
DROP VIEW persons;
