-- The cap check that holds whatever else runs: the row's own CHECK.
UPDATE budgets SET spent = spent + $cost, cap = $cap WHERE population = $population;
