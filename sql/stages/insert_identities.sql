-- The hashes that identify the people of this release in other populations too, each once.
INSERT INTO main.identities SELECT person, everywhere FROM {{table}};
