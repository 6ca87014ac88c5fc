"""Speed and memory of the privacy core and of a whole release as ratios against named baselines: `python -m benchmarks --help`.

A measurement is not a test: a missed target is printed, not raised.
"""
