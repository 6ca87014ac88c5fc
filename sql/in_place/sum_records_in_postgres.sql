-- How many records there are, and a sum that differs, except with a chance of 2^-64, if a record differs.
SELECT count(*) AS records, coalesce(sum(hashtextextended(ROW({{columns}})::text, 0)::numeric), 0)::text AS total FROM {{records}};
