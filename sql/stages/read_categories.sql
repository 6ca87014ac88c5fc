-- One categorical column in source order.
SELECT {{entry}}({{column}}) AS value FROM raw;
