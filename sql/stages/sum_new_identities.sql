-- What stages/insert_identities will add to stages/sum_identities.
SELECT coalesce(sum(word_after($key, person || everywhere)), 0)
FROM people ANTI JOIN main.identities AS known USING (person, everywhere);
