-- The hash of a person of this population beside that under the key of all populations: who is in several is found by it.
CREATE TABLE IF NOT EXISTS main.identities (person BLOB NOT NULL, everywhere BLOB NOT NULL);
