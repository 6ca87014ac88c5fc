-- The largest cost of each charge, in one definition and scope each; NULL is infinity.
CREATE TABLE losses (population VARCHAR, release VARCHAR, what VARCHAR, loss HUGEINT);
