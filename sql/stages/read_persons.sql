-- The person of each record, as the first 16 bytes of HMAC-SHA256 under a key whose pads are given. Records without a person have
-- none.
SELECT unhex(left(sha256($outer || unhex(sha256($inner || person))), 32)) AS hashes
FROM (SELECT encode({{person}}) AS person FROM raw)
WHERE person IS NOT NULL;
