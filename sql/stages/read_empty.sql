-- Which records are empty slots, in source order.
SELECT {{empty}} AS value FROM raw;
