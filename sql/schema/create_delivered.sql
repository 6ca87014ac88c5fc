-- The records that somebody delivered: what counts are about that leave the vault.
CREATE OR REPLACE TEMP VIEW delivered AS SELECT * FROM raw;
