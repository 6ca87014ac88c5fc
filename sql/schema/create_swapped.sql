-- In which block of alike records people are, by policy: those of its last release by their keyed hashes, and whoever was in an
-- earlier one. `nth`: which of the records of one person.
CREATE TABLE IF NOT EXISTS main.swapped (
    policy VARCHAR NOT NULL, person BLOB USING COMPRESSION uncompressed NOT NULL, nth INTEGER NOT NULL, block BIGINT NOT NULL
);
