-- The sealed sums over the stored data on people outside the schemas of releases: one row, replaced with every release.
CREATE TABLE IF NOT EXISTS main.people_notes (note VARCHAR NOT NULL);
