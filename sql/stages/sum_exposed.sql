-- A sum of keyed hashes: whoever has no key cannot change a row and keep it. A person's hash has 16 bytes, so where it begins is known.
SELECT coalesce(sum(('0x' || substr(sha256($key || encode(release) || person), 1, 16))::UBIGINT), 0) FROM main.exposed;
