-- Some rows of some columns, in the order in which they were written.
SELECT {{columns}} FROM {{table}} WHERE rowid >= $first AND rowid < $beyond;
