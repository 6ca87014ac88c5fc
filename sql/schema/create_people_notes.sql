-- The sealed sums over what is kept of people outside the schemas of releases: one row, written again with every release.
CREATE TABLE IF NOT EXISTS main.people_notes (note VARCHAR NOT NULL);
