INSERT INTO everybody SELECT population, policy, release, id FROM people;
