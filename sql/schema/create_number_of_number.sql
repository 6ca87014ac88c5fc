-- A number of any width as DOUBLE; the declared grid decides how exactly it is read.
CREATE OR REPLACE TEMP MACRO number_of_number(written) AS TRY_CAST(written AS DOUBLE);
