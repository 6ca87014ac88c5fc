SELECT name FROM (VALUES ('events'), ('head'), ('budgets')) AS wanted (name) WHERE to_regclass(name) IS NOT NULL;
