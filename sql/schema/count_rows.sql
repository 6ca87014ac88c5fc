SELECT count(*) FROM {{room}}.{{table}};
