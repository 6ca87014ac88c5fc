-- The same where households were filled up: an empty slot is nobody's record.
CREATE OR REPLACE TEMP VIEW delivered AS SELECT * FROM raw WHERE NOT {{empty}};
