-- From here to the end of the transaction no other host writes to a registry in this database. No other lock has this number.
SELECT pg_advisory_xact_lock(7232617053416);
