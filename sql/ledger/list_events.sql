-- Every event, in order.
SELECT number, body, hash, seal FROM events ORDER BY number;
