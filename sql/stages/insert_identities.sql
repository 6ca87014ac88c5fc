-- The hashes by which the people of this release are found in other populations too, each once.
INSERT INTO main.identities SELECT person, everywhere FROM {{table}};
