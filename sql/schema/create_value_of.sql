-- A number, or NULL if it is one of the codes or NaN.
CREATE OR REPLACE TEMP MACRO value_of(number, codes) AS
    CASE WHEN isnan(number) OR list_contains(codes, number) THEN NULL ELSE number END;
