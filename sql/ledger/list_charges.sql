SELECT * FROM charges WHERE population = $population ORDER BY policy, release, revision;
