-- The whole minutes from the beginning of 1970 to the minute of a moment.
CREATE OR REPLACE TEMP MACRO minute_of_instant(instant) AS CAST(date_diff('minute', TIMESTAMP '1970-01-01', instant) AS DOUBLE);
