-- Who is in which charged release of this population: keyed hashes of persons.
CREATE TABLE IF NOT EXISTS main.exposed (release VARCHAR NOT NULL, person BLOB NOT NULL);
