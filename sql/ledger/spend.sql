-- The cap check that always holds: the row's own CHECK.
UPDATE budgets SET spent = spent + $cost, cap = $cap WHERE population = $population;
