-- The same where slots were filled up: an empty slot is no record.
CREATE OR REPLACE TEMP VIEW delivered AS SELECT * FROM raw WHERE NOT {{empty}};
