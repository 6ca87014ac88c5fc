-- For each two policies, of one population or of two: how many people are in both.
WITH members AS (SELECT DISTINCT population, policy, id FROM everybody)
SELECT
    a.population AS population,
    a.policy     AS policy,
    b.population AS other_population,
    b.policy     AS other_policy,
    count(*)     AS people
FROM members AS a JOIN members AS b USING (id)
WHERE (a.population, a.policy) < (b.population, b.policy)
GROUP BY ALL
ORDER BY ALL;
