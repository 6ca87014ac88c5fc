-- Who is in which charged release of one population, by the hash that is the same everywhere where there is one.
SELECT
    $population                              AS population,
    split_part(release, '/', 1)              AS policy,
    release,
    coalesce(everywhere, exposed.person)     AS id,
    everywhere IS NOT NULL                   AS known
FROM main.exposed LEFT JOIN main.identities USING (person);
