-- What stages/insert_identities will add to stages/sum_identities.
SELECT coalesce(sum(('0x' || substr(sha256($key || person || everywhere), 1, 16))::UBIGINT), 0)
FROM people ANTI JOIN main.identities AS known USING (person, everywhere);
