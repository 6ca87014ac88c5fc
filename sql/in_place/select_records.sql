-- Postgres: the needed columns of the records of one release.
SELECT {{columns}} FROM {{table}} WHERE {{condition}};
