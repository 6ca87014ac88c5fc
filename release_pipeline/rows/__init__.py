"""Tables in memory as columns: checked, suppressed, made again of what is published."""
