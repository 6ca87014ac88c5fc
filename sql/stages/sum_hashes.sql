-- The sum over these rows of the first eight bytes of SHA-256 of a key and the row, as big-endian numbers.
SELECT coalesce(sum(('0x' || left(sha256($key || coalesce(row_of, ''::BLOB)), 16))::UBIGINT), 0)::HUGEINT AS total
FROM {{rows}};
