-- Who is in which charged release of one population, by the hash that is the same in every population.
SELECT $population AS population, split_part(release, '/', 1) AS policy, release, everywhere AS id
FROM main.exposed JOIN main.identities USING (person);
