INSERT INTO losses VALUES ($population, $release, $what, $loss);
