-- How many people of this release are in at least one of these other releases of the population.
SELECT count(DISTINCT person) AS shared
FROM main.exposed
WHERE list_contains($releases, release) AND person IN (SELECT person FROM people);
