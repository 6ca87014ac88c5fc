-- Whether that is done.
SELECT current_setting('lock_configuration');
