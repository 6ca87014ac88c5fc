-- How many records there are, and a sum that is another, but for a chance of 2^-64, when a record is.
SELECT count(*) AS records, coalesce(sum(CAST(hash({{columns}}) AS HUGEINT)), 0) AS total FROM delivered;
