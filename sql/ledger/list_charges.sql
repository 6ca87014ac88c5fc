-- Every charge to a population, in the order in which they were made.
SELECT * FROM charges WHERE population = $population ORDER BY number;
