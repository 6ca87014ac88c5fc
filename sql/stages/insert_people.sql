-- Every person of one of $parts parts once, as keyed hashes (HMAC-SHA256, cut to 128 bits), in their order: the source's order is
-- gone. person: under the key of the population; everywhere: under that of all populations whose persons are told apart by a column
-- of this name. Each step is materialised, so that nothing is normalised or hashed twice.
INSERT INTO {{table}}
WITH entries AS MATERIALIZED (
    SELECT DISTINCT encode(person) AS entry
    FROM persons
    WHERE person IS NOT NULL AND ($parts = 1 OR hash(person) % $parts = $part)
),
inner_hashes AS MATERIALIZED (
    SELECT
        hash_after($inner, entry)               AS own,
        hash_after($everywhere_inner, entry)    AS of_all
    FROM entries
)
SELECT
    (hash_after($outer, own))[1:16]                   AS person,
    (hash_after($everywhere_outer, of_all))[1:16]     AS everywhere
FROM inner_hashes
ORDER BY person;
