SELECT population, unit, spent, cap FROM budgets ORDER BY population, unit;
