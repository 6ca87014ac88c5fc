-- Moments with a zone are read in UTC, independent of the machine's zone.
SET TimeZone = 'UTC';
