"""The experiments of the papers, measured again: `python -m experiments.papers --help`."""
