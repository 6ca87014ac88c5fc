-- Before the first event.
INSERT INTO head SELECT 0, '' WHERE NOT EXISTS (FROM head) AND NOT EXISTS (FROM events);
