-- One row: the last event. Every writer changes it, so that of two transactions at once only one commits.
CREATE TABLE IF NOT EXISTS head (number BIGINT NOT NULL, hash VARCHAR NOT NULL);
