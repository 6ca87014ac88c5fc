-- The needed columns of a source table, unchanged.
SELECT {{columns}} FROM {{table}};
