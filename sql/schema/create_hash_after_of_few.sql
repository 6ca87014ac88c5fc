-- SHA-256 of a beginning and a row behind it, as bytes.
CREATE OR REPLACE TEMP MACRO hash_after(beginning, row_of) AS unhex(sha256(beginning || row_of));
