-- Text as it is compared: without spaces around it; nothing is NULL.
CREATE OR REPLACE TEMP MACRO entry_of_text(written) AS nullif(trim(written), '');
