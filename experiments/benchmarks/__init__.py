"""What methods and releases cost, in time and memory: `python -m experiments.benchmarks --help`."""
