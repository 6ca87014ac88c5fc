-- In memory, for one query over all populations: who is in which charged release. id: the hash that is the same everywhere.
CREATE TABLE everybody (population VARCHAR, policy VARCHAR, release VARCHAR, id BLOB);
