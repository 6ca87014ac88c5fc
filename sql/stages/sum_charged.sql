-- As in stages/sum_exposed; a table of few rows.
SELECT coalesce(sum(('0x' || substr(sha256($key || encode(release || ' ' || people::VARCHAR)), 1, 16))::UBIGINT), 0)
FROM main.charged;
