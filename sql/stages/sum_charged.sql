-- As in stages/sum_exposed; a table of few rows.
SELECT coalesce(sum(word_after($key, encode(release || ' ' || people::VARCHAR))), 0)
FROM main.charged;
