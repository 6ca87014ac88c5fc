-- Some rows of a numeric column, in source order.
SELECT {{number}} AS value FROM {{table}} WHERE rowid >= $first AND rowid < $beyond;
