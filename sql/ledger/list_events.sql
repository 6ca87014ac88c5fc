-- Every event, in order.
SELECT number, body, hash FROM events ORDER BY number, rowid;
