-- The note of each stage of a release, as JSON. The last note of a stage counts.
CREATE TABLE IF NOT EXISTS notes (stage VARCHAR NOT NULL, note VARCHAR NOT NULL);
