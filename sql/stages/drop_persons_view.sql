-- They are counted.
DROP VIEW persons;
