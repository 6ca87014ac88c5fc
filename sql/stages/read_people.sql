-- Every person once, as keyed hashes (HMAC-SHA256, cut to 128 bits), in their order: the source's order is gone. person: under the
-- key of the population; everywhere: under that of all populations whose persons are told apart by a column of this name.
SELECT DISTINCT
    unhex(left(sha256($outer || unhex(sha256($inner || encode(entry)))), 32))                           AS person,
    unhex(left(sha256($everywhere_outer || unhex(sha256($everywhere_inner || encode(entry)))), 32))     AS everywhere
FROM (SELECT person_of({{entry}}({{column}})) AS entry FROM raw WHERE {{entry}}({{column}}) IS NOT NULL)
ORDER BY person;
