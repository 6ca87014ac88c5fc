"""The methods that mask one column at a time, from clusters to released numbers."""
