-- Releases with people of whom only the hash of their own population is known: they are found in no other.
SELECT population, release FROM everybody WHERE NOT known GROUP BY ALL ORDER BY ALL;
