-- The whole hours from the beginning of 1970 to the hour of a moment.
CREATE OR REPLACE TEMP MACRO hour_of_instant(instant) AS CAST(date_diff('hour', TIMESTAMP '1970-01-01', instant) AS DOUBLE);
