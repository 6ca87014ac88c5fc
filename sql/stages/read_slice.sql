-- Some rows of a column, in the order in which they were written.
SELECT {{column}} FROM {{table}} WHERE rowid >= $first AND rowid < $beyond;
