-- The hash of a person of this population beside that under the key of all populations: who is in several is found by it.
CREATE TABLE IF NOT EXISTS main.identities (
    person BLOB USING COMPRESSION uncompressed NOT NULL,
    everywhere BLOB USING COMPRESSION uncompressed NOT NULL
);
