-- Of Postgres: what was sorted for it is no longer needed.
CLOSE {{cursor}};
