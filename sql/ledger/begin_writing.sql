-- From here to the end of the transaction no other host writes to a registry in this database. The number is that of no other lock.
SELECT pg_advisory_xact_lock(7232617053416);
