SELECT spent FROM budgets WHERE population = $population AND unit = $unit;
