SELECT release, people FROM main.charged ORDER BY release;
