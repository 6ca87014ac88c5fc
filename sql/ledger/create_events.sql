-- Everything that happened, in order: canonical JSON with the hash of the event before it, its own hash, and the site's seal of that.
-- Append-only, no index.
CREATE TABLE IF NOT EXISTS events (number BIGINT NOT NULL, body VARCHAR NOT NULL, hash VARCHAR NOT NULL, seal VARCHAR NOT NULL);
