-- The whole days from the beginning of 1970 to the day of a moment.
CREATE OR REPLACE TEMP MACRO day_of_instant(instant) AS CAST(date_diff('day', TIMESTAMP '1970-01-01', instant) AS DOUBLE);
