INSERT INTO everybody SELECT population, policy, release, id, known FROM people;
