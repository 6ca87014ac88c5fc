-- They are known now.
DROP TABLE new_identities;
