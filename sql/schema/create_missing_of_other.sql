-- Whether anything else (a date, a time) is missing.
CREATE OR REPLACE TEMP MACRO missing_of_other(written) AS written IS NULL;
