-- Whether a number is missing: NULL or NaN, as its text entry would be.
CREATE OR REPLACE TEMP MACRO missing_of_number(written) AS
    written IS NULL OR coalesce(isnan(TRY_CAST(written AS DOUBLE)), false);
