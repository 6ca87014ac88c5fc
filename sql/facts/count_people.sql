-- How many people were in exactly these releases.
SELECT releases, count(*) AS people
FROM (SELECT person, list(release ORDER BY release) AS releases FROM main.exposed GROUP BY person)
GROUP BY releases;
