-- In memory, for one look over all populations: who is in which charged release. id: the hash that is the same everywhere where
-- there is one, or else that of the population, which is like no other's.
CREATE TABLE everybody (population VARCHAR, policy VARCHAR, release VARCHAR, id BLOB, known BOOLEAN);
