-- The releases that somebody is recorded to be in.
SELECT DISTINCT release FROM main.exposed;
