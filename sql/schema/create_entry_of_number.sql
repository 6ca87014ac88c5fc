-- A number as text, whole numbers without a point, so that 1.0 equals the declared category 1; NaN becomes NULL.
CREATE OR REPLACE TEMP MACRO entry_of_number(written) AS
    CASE WHEN isnan(TRY_CAST(written AS DOUBLE)) THEN NULL
         WHEN TRY_CAST(written AS BIGINT) = written THEN CAST(CAST(written AS BIGINT) AS VARCHAR)
         ELSE CAST(written AS VARCHAR) END;
