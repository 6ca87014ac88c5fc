-- Who is in which charged release of this population: keyed hashes of persons, which do not compress.
CREATE TABLE IF NOT EXISTS main.exposed (release VARCHAR NOT NULL, person BLOB USING COMPRESSION uncompressed NOT NULL);
