-- The present state of every release.
SELECT * FROM states QUALIFY row_number() OVER (PARTITION BY policy, release, revision ORDER BY number DESC) = 1
ORDER BY policy, release, revision;
