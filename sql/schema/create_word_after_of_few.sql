-- The first eight bytes of SHA-256 of a beginning and a row behind it, as a number, the first one the highest.
CREATE OR REPLACE TEMP MACRO word_after(beginning, row_of) AS
    ('0x' || substr(sha256(beginning || row_of), 1, 16))::UBIGINT;
