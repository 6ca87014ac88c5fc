-- Every person once, as a keyed hash (HMAC-SHA256, cut to 128 bits), in the order of the hashes: the source's order is gone.
SELECT DISTINCT unhex(left(sha256($outer || unhex(sha256($inner || encode(person_of({{entry}}({{column}})))))), 32)) AS person
FROM raw
WHERE {{entry}}({{column}}) IS NOT NULL
ORDER BY person;
