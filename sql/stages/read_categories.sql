-- Some rows of a categorical column, in source order.
SELECT {{entry}}({{column}}) AS value FROM {{table}} WHERE rowid >= $first AND rowid < $beyond;
