SELECT unit, spent FROM budgets WHERE population = $population;
