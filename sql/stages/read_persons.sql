-- Whose record each is, as HMAC-SHA256 under two keys, whose pads are given: 16 bytes of the first, then 16 of the second. Records
-- without a person have none.
SELECT
    unhex(left(sha256($outer || unhex(sha256($inner || person))), 32))
    || unhex(left(sha256($outer_everywhere || unhex(sha256($inner_everywhere || person))), 32)) AS hashes
FROM (SELECT encode({{person}}) AS person FROM raw)
WHERE person IS NOT NULL;
