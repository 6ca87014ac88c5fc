-- Every change of a release's state, in order. Append-only; the last one of a release counts.
CREATE TABLE IF NOT EXISTS states (
    number         BIGINT NOT NULL,
    policy         VARCHAR NOT NULL,
    release        VARCHAR NOT NULL,
    revision       INTEGER NOT NULL,
    state          VARCHAR NOT NULL,
    reason         VARCHAR NOT NULL,
    policy_hash    VARCHAR NOT NULL,
    candidate_hash VARCHAR,
    facts          VARCHAR NOT NULL,
    noted           VARCHAR NOT NULL
);
