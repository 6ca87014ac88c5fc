"""The mathematical core of methods.md, exact to the last integer. It needs only NumPy, SciPy, a cipher and a compiler."""

from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.basis.grid import Grid
from release_pipeline.mechanisms.clusters.curve import cell_reach, curve_depth, order_clusters, order_keys
from release_pipeline.mechanisms.clusters.cuts import mondrian
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.mechanisms.clusters.mdav import mdav
from release_pipeline.mechanisms.clusters.rank import OrderClusters, rank_clusters
from release_pipeline.mechanisms.columns.methods import Claim, MaskedColumn, mask_column
from release_pipeline.mechanisms.noise import NoiseStream, discrete_laplace, noise_stream

__all__ = [
    "Claim",
    "Epsilon",
    "Grid",
    "Hierarchy",
    "MaskedColumn",
    "NoiseStream",
    "OrderClusters",
    "cell_reach",
    "curve_depth",
    "discrete_laplace",
    "mask_column",
    "mdav",
    "mondrian",
    "noise_stream",
    "order_clusters",
    "order_keys",
    "rank_clusters",
]
