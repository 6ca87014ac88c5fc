-- No number twice, whoever writes: what holds even where the lock does not.
CREATE UNIQUE INDEX ON events (number);
