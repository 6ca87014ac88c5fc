-- A decimal number as a person or a program writes it; anything else (hexadecimal, 1_000, nan, a date) is NULL.
CREATE OR REPLACE TEMP MACRO number_of_text(written) AS
    CASE WHEN regexp_full_match(trim(written), '[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?')
         THEN TRY_CAST(trim(written) AS DOUBLE) END;
