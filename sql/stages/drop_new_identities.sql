-- The new hashes are stored, so this table is no longer needed.
DROP TABLE new_identities;
