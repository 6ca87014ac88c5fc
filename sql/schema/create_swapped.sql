-- Which block of alike records each record was in, in the last release of each policy that swaps values: by keyed hashes of persons.
CREATE TABLE IF NOT EXISTS main.swapped (
    release VARCHAR NOT NULL, person BLOB USING COMPRESSION uncompressed NOT NULL, block BIGINT NOT NULL
);
