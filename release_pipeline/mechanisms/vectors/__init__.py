"""The methods that mask all columns of numbers together."""
