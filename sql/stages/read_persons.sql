-- The person of each record, as the first 16 bytes of SHA-256 behind a secret block. Records without a person have none.
SELECT unhex(left(sha256($key || encode(person)), 32)) AS hashes
FROM (SELECT {{person}} AS person FROM raw)
WHERE person IS NOT NULL;
