"""Tables in memory as columns: checked, suppressed, made again from published ones."""
