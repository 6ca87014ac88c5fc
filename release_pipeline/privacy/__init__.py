"""The mathematical core: methods.md sections 0 to 3, exact to the last integer. NumPy, SciPy and a cipher; nothing else."""

from release_pipeline.privacy.budget import Epsilon
from release_pipeline.privacy.clusters import RankClusters, rank_clusters
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.methods import Claim, MaskedColumn, mask_column
from release_pipeline.privacy.noise import NoiseStream, discrete_laplace, noise_stream

__all__ = [
    "Claim",
    "Epsilon",
    "Grid",
    "MaskedColumn",
    "NoiseStream",
    "RankClusters",
    "discrete_laplace",
    "mask_column",
    "noise_stream",
    "rank_clusters",
]
