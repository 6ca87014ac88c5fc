-- The events after one, in order.
SELECT number, body, hash, seal FROM events WHERE number > $known ORDER BY number;
