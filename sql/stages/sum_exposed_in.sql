-- The part of stages/sum_exposed that one release has.
SELECT coalesce(sum(word_after($key, encode(release) || person)), 0)
FROM main.exposed
WHERE release = $release;
