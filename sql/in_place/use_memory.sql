-- The memory that DuckDB may use: the run's share.
SET memory_limit = '{{bytes}}B';
