-- Persons are counted, so this view is no longer needed.
DROP VIEW persons;
