-- The charged releases, as they are summed up; a table of few rows.
SELECT encode(release || ' ' || people::VARCHAR) AS row_of FROM main.charged;
