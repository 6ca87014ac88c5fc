-- The part of stages/sum_exposed that one release has.
SELECT coalesce(sum(('0x' || substr(sha256($key || encode(release) || person), 1, 16))::UBIGINT), 0)
FROM main.exposed
WHERE release = $release;
