-- For each two populations: how many people are in both.
WITH members AS (SELECT DISTINCT population, id FROM everybody)
SELECT a.population AS population, b.population AS other_population, count(*) AS people
FROM members AS a JOIN members AS b USING (id)
WHERE a.population < b.population
GROUP BY ALL
ORDER BY ALL;
