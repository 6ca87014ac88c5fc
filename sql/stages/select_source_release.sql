-- The needed columns of one release's records; the release column is compared as text.
SELECT {{columns}} FROM {{table}} WHERE trim(CAST({{release}} AS VARCHAR)) = $1;
