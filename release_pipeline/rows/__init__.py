"""Tables in memory as columns: checked, suppressed, made anew of what is published."""
