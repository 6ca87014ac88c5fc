-- What each release may cost at most, in nano-epsilon, for each definition and scope; NULL is infinity. source: the keyed hash of the records.
-- Append-only.
CREATE TABLE IF NOT EXISTS charges (
    number       BIGINT NOT NULL,
    population   VARCHAR NOT NULL,
    policy       VARCHAR NOT NULL,
    release      VARCHAR NOT NULL,
    revision     INTEGER NOT NULL,
    policy_hash  VARCHAR NOT NULL,
    source       VARCHAR NOT NULL,
    dp_centroid  BIGINT,
    dp_column    BIGINT,
    dp_table     BIGINT,
    idp_centroid BIGINT,
    idp_column   BIGINT,
    idp_table    BIGINT,
    noted         VARCHAR NOT NULL
);
