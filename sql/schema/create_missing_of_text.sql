-- Whether a text is missing: NULL or blank, as its entry would be.
CREATE OR REPLACE TEMP MACRO missing_of_text(written) AS written IS NULL OR trim(written) = '';
