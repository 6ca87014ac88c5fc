-- The hash of a person of this population, with that under the key of all populations: the second finds people who are in
-- several.
CREATE TABLE IF NOT EXISTS main.identities (
    person BLOB USING COMPRESSION uncompressed NOT NULL,
    everywhere BLOB USING COMPRESSION uncompressed NOT NULL
);
