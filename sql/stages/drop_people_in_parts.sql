-- They are in their order elsewhere.
DROP TABLE people_in_parts;
