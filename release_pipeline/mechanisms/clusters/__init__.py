"""Records into clusters and classes: by rank, by a curve, by similarity, by declared hierarchies."""
