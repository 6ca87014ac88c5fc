-- What came part by part, in order.
INSERT INTO people SELECT person, everywhere FROM people_in_parts ORDER BY person;
