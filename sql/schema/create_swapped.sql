-- The block of similar records of each person, by policy: the blocks of its last release by keyed hashes, and of everybody who
-- was in an earlier one. `nth`: which of the records of one person.
CREATE TABLE IF NOT EXISTS main.swapped (
    policy VARCHAR NOT NULL, person BLOB USING COMPRESSION uncompressed NOT NULL, nth INTEGER NOT NULL, block BIGINT NOT NULL
);
