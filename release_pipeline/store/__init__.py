"""Everything that is stored or read with DuckDB. No other folder imports it, and no other place holds SQL text."""
