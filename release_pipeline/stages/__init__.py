"""What happens to the table, one file a stage. Arrays and counts in, arrays and evidence out; no I/O."""
