-- One numeric column in source order.
SELECT {{number}}({{column}}) AS value FROM raw;
