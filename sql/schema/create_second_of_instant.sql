-- The whole seconds from the beginning of 1970 to the second of a moment.
CREATE OR REPLACE TEMP MACRO second_of_instant(instant) AS CAST(date_diff('second', TIMESTAMP '1970-01-01', instant) AS DOUBLE);
