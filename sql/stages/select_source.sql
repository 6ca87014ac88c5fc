-- The needed columns of a source table, as they are.
SELECT {{columns}} FROM {{table}};
