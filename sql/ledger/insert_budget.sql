INSERT INTO budgets VALUES ($population, $unit, $spent, $cap);
