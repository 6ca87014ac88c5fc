-- The sealed sums over what is kept of people beside the rooms: one row, written anew with every release.
CREATE TABLE IF NOT EXISTS main.people_notes (note VARCHAR NOT NULL);
