-- No number occurs twice, whoever writes: this holds even if the lock does not.
CREATE UNIQUE INDEX ON events (number);
