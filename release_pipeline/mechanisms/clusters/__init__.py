"""Records into clusters and classes: by rank, by a curve, by likeness, by declared hierarchies."""
