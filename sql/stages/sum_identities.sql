-- As in stages/sum_exposed.
SELECT coalesce(sum(word_after($key, person || everywhere)), 0) FROM main.identities;
