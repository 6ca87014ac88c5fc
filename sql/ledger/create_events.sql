-- Everything that happened, in order: canonical JSON with the hash of the event before it, and its own hash. Append-only, no index.
CREATE TABLE IF NOT EXISTS events (number BIGINT NOT NULL, body VARCHAR NOT NULL, hash VARCHAR NOT NULL);
