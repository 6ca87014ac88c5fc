-- A number as text, whole numbers without a point, so that 1.0 meets the declared category 1.
CREATE OR REPLACE TEMP MACRO entry_of_number(written) AS
    CASE WHEN TRY_CAST(written AS BIGINT) = written THEN CAST(CAST(written AS BIGINT) AS VARCHAR)
         ELSE CAST(written AS VARCHAR) END;
