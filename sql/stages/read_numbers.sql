-- One numeric column in source order.
SELECT {{number}} AS value FROM raw;
