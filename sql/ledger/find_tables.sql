SELECT 1 FROM events, head, budgets LIMIT 0;
