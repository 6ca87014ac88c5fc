-- How many records there are, and a sum that is another, but for a chance of 2^-64, when a record is.
SELECT count(*) AS records, coalesce(sum(hashtextextended(ROW({{columns}})::text, 0)::numeric), 0)::text AS total FROM {{records}};
