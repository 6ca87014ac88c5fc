-- Before the first event.
INSERT INTO head SELECT 0, '' WHERE NOT EXISTS (SELECT 1 FROM head) AND NOT EXISTS (SELECT 1 FROM events);
