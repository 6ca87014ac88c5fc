-- A sum of keyed hashes: whoever has no key cannot change a row and keep it. A person's hash has 16 bytes, so where it begins is known.
SELECT coalesce(sum(word_after($key, encode(release) || person)), 0) FROM main.exposed;
