INSERT INTO main.exposed SELECT $release, person FROM people;
