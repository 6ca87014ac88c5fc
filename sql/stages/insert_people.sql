-- Every person of one of $parts parts once, as keyed hashes (HMAC-SHA256, cut to 128 bits), in their order: the source's order is
-- gone. person: under the key of the population; everywhere: under that of all populations whose persons are told apart by a column
-- of this name. Each step is materialised, so that nothing is normalised or hashed twice.
INSERT INTO {{table}}
WITH entries AS MATERIALIZED (
    SELECT DISTINCT encode(person) AS entry
    FROM persons
    WHERE person IS NOT NULL AND ($parts = 1 OR hash(person) % $parts = $part)
),
hashes AS MATERIALIZED (
    SELECT people_after($inner, $outer, $everywhere_inner, $everywhere_outer, entry) AS both_of FROM entries
)
SELECT
    both_of[1:16]   AS person,
    both_of[17:32]  AS everywhere
FROM hashes
ORDER BY person;
