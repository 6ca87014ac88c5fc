-- For each of some earlier releases: how many people joined since, and how many left.
SELECT
    release,
    (SELECT count(*) FROM people) - count(*) FILTER (person IN (SELECT person FROM people))  AS joined,
    count(*) FILTER (person NOT IN (SELECT person FROM people))                              AS gone
FROM main.exposed
WHERE list_contains($releases, release)
GROUP BY release
ORDER BY release;
