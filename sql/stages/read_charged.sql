-- The charged releases in the form that is summed; a table of few rows.
SELECT encode(release || ' ' || people::VARCHAR) AS row_of FROM main.charged;
