SELECT count(*) FROM {{workspace}}.{{table}};
