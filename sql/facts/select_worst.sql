-- The largest total charge of one person over all populations, for each definition and scope; NULL is infinity.
WITH sums AS (
    SELECT what, id, CASE WHEN bool_or(loss IS NULL) THEN NULL ELSE sum(loss) END AS total
    FROM (SELECT DISTINCT population, release, id FROM everybody) JOIN losses USING (population, release)
    GROUP BY what, id
)
SELECT what, CASE WHEN bool_or(total IS NULL) THEN NULL ELSE max(total) END AS worst FROM sums GROUP BY what ORDER BY what;
