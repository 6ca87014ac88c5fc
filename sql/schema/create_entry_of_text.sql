-- Text for comparisons: without spaces around it; empty text becomes NULL.
CREATE OR REPLACE TEMP MACRO entry_of_text(written) AS nullif(trim(written), '');
