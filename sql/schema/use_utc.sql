-- What has a zone is read in UTC, wherever the machine stands.
SET TimeZone = 'UTC';
