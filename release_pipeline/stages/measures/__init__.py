"""What reviewers are told of a released table beyond closed formulas of numbers: a measure a file. scikit-learn is imported here
alone, where it is used. Internal, like every figure against the original."""
