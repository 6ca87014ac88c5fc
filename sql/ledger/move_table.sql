ALTER TABLE {{table}} RENAME TO {{aside}};
