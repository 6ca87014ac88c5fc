DELETE FROM budgets WHERE population = $population;
