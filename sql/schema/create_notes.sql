-- What each stage of a release said of itself, as JSON. The last note of a stage counts.
CREATE TABLE IF NOT EXISTS notes (stage VARCHAR NOT NULL, note VARCHAR NOT NULL);
