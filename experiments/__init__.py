"""What the methods are judged by: the papers repeated, peers beside them, benchmarks. It is shipped to nobody."""
