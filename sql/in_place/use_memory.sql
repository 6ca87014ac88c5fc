-- As much as a run's share of memory lets DuckDB take.
SET memory_limit = '{{bytes}}B';
