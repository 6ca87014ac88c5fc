"""Multivariate microaggregation, end to end for several columns at once: the masking kernel of vectors.

    mdav       clusters of similar records (z-scores), exact centroids    k-anonymity on the columns     no noise, no epsilon
    dp-mdav    clusters along an order of single records (KDP13)
               plain sums      eps-DP     centroid: scale W / eps       table: W reach / eps           `chains.order_reach`
               trimmed sums    eps-iDP    centroid: D / eps             table: the calibration         `chains.calibrate_table`

A record is replaced by the centroid of its cluster, a vector with one value for each column. The order of dp-mdav depends on each
record only, so one change moves at most one record into and one out of each cluster (insensitive microaggregation, KDP13), which
bounds the noise. MDAV's clusters depend on all records: it is for k-anonymity only.

`compute_vectors` and `methods.add_noise` are pure functions of (columns, specification, secret, context).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.accounting.scales import TRIMMED
from release_pipeline.mechanisms.accounting.sensitivity import refuse_scale, scales_for
from release_pipeline.mechanisms.basis.grid import Grid, IntArray, as_numbers
from release_pipeline.mechanisms.catalogue.entries import STATISTICS
from release_pipeline.mechanisms.clusters.curve import order_clusters
from release_pipeline.mechanisms.clusters.mdav import mdav
from release_pipeline.mechanisms.clusters.rank import OrderClusters
from release_pipeline.mechanisms.columns.methods import SUM_LIMIT, Claim, Statistics
from release_pipeline.mechanisms.noise import MAX_SCALE, Context, noise_stream
from release_pipeline.mechanisms.vectors.chains import (
    Extremes,
    Neighbours,
    calibrate_table,
    find_extremes,
    find_neighbours,
    order_reach,
    reach_scales,
    table_loss,
)

Order: TypeAlias = Literal["corner", "hilbert"]
Statistic: TypeAlias = Literal["plain", "trimmed"]
VectorScope: TypeAlias = Literal["centroid", "table"]
VECTOR_SCOPES: tuple[VectorScope, ...] = get_args(VectorScope)


@dataclass(frozen=True, slots=True)
class Insensitive:
    """The settings of dp-mdav's clusters and noise: `epsilons` for each column, which add up to the release's."""

    epsilons: tuple[Epsilon, ...]
    k: int
    order: Order
    statistic: Statistic
    scope: VectorScope

    @property
    def epsilon(self) -> Epsilon:
        """Return the epsilon of all columns together."""
        return Epsilon(sum(part.nano for part in self.epsilons))

    @property
    def weights(self) -> list[Fraction]:
        """Return the share of each column in epsilon."""
        return [Fraction(part.nano, self.epsilon.nano) for part in self.epsilons]

    @property
    def definition(self) -> str:
        """Return the definition: dp or idp."""
        return STATISTICS[self.statistic][1].key


@dataclass(frozen=True, slots=True)
class MdavSpec:
    """The settings of mdav's clusters: k to 2k-1 similar records."""

    k: int


def quantise_columns(columns: Iterable[npt.NDArray[np.generic]], grids: Sequence[Grid]) -> IntArray:
    """Return records by columns, each in units of its grid; columns are requested one after the other."""
    out = np.empty((0, len(grids)), dtype=np.int64)
    for place, (column, grid) in enumerate(zip(columns, grids, strict=True)):
        out = out if place else np.empty((len(column), len(grids)), dtype=np.int64)
        out[:, place] = grid.quantise(as_numbers(column))
    return out


def compute_vectors(
    units: IntArray,
    *,
    grids: Sequence[Grid],
    spec: Insensitive | MdavSpec,
    secret: bytes,
    context: Sequence[Context],
    progress: Callable[[str], None] = lambda _: None,
) -> list[Statistics]:
    """Return clusters of all columns together, and for each column its exact sums and scales: the input of `add_noise`. Only the
    order of ties uses the secret. `units`: records by columns, in grid units."""
    if len(units) == 0:
        raise InvalidArgument("there are no records to mask.", where="values")
    widths = [grid.width for grid in grids]
    check_vector_sizes(widths, spec, clusters=max(len(units) // spec.k, 1))
    if isinstance(spec, MdavSpec):
        return _find_mdav(units, grids, spec, progress)
    clusters = order_clusters(
        units,
        widths,
        spec.k,
        order=spec.order,
        ties=noise_stream(secret, *context, "ties"),
    )
    ordered = units[clusters.order]
    del units  # not used below
    extremes = find_extremes(ordered, clusters) if spec.statistic == "trimmed" else None
    statistic = extremes.trimmed if extremes is not None else np.add.reduceat(ordered, clusters.start, axis=0)
    neighbours = find_neighbours(ordered, clusters, np.array(widths), extremes)
    if extremes is not None and spec.scope == "table":
        scale = calibrate_table(neighbours, extremes.moves, np.array(widths), spec.weights, spec.epsilon)
    else:
        scale = _centroid_or_public_scales(clusters, widths, spec, extremes)
    loss = {"table": float(_find_loss(neighbours, scale, widths, spec))}
    return [
        Statistics(
            grid=grid,
            claim=Claim(spec.definition, epsilon, spec.scope),
            consistency="none",
            cluster=clusters.cluster,
            size=clusters.size,
            statistic=np.ascontiguousarray(statistic[:, index]),
            scale=np.ascontiguousarray(scale[:, index]),
            loss=loss,
        )
        for index, (grid, epsilon) in enumerate(zip(grids, spec.epsilons, strict=True))
    ]


def check_vector_sizes(widths: Sequence[int], spec: Insensitive | MdavSpec, *, clusters: int = 1) -> None:
    """Refuse sums, or noise for so many clusters, beyond 64 bits for some data, which would not be exact; and a k that is too
    small."""
    if (2 * spec.k - 1) * max(widths) >= SUM_LIMIT:
        raise InvalidArgument(
            "cluster sums would not fit 64-bit integers.",
            where="grid",
            remedy="Use a smaller k, a coarser grid or a narrower domain.",
        )
    if isinstance(spec, MdavSpec):
        return
    if any(part.nano == 0 for part in spec.epsilons):
        raise InvalidArgument("epsilon must be above 0 (at least 0.000000001) for every column.", where="epsilon")
    least = STATISTICS[spec.statistic][0].least_k
    if spec.k < least:
        raise InvalidArgument(f"{spec.statistic} sums need k of at least {least}.", where="k")
    public_scales(widths, spec, clusters=clusters)
    if spec.statistic == "trimmed" and spec.scope == "table" and max(worst_scales(widths, spec, clusters=clusters)) > MAX_SCALE:
        raise refuse_scale(clusters)  # now, by public facts, and not later depending on the data


def worst_scales(widths: Sequence[int], spec: Insensitive, *, clusters: int) -> list[float]:
    """Return the largest scale of each column's trimmed sums that the calibration for scope table can choose, over all data.

    Each D is at most r = 2 widths (3 for k = 3). With all of them that large and w_a the share of column a in epsilon,
    `calibrate_table` gives |C| b_a <= (|C| / k) (r W_a / epsilon) w_a^(-2/3) p sum_b w_b^(2/3), where |C| is at most 2k - 1; its
    last step, by the loss, makes scales smaller.
    """
    weights = np.array([float(weight) for weight in spec.weights])
    parts = np.cbrt(weights * weights)
    reach = TRIMMED.reach(spec.k) * clusters * float(np.sum(parts)) / float(spec.epsilon)
    return [
        1.001 * (2 * spec.k - 1) / spec.k * reach * width / float(part) + 1 for width, part in zip(widths, parts, strict=True)
    ]


def public_scales(widths: Sequence[int], spec: Insensitive, *, clusters: int) -> list[int]:
    """Return the scale of each column's sums, from public facts: exact for plain sums; for trimmed ones, whose scale depends on D
    and the data, the scale at scope centroid for the largest D (twice the width, three times for k = 3)."""
    if spec.statistic == "plain" and spec.scope == "table":
        return reach_scales(widths, spec.weights, find_reach(widths, spec, clusters=clusters), spec.epsilon)
    reach = 1 if spec.statistic == "plain" else TRIMMED.reach(spec.k)
    return [int(scales_for(np.array([width * reach]), part)[0]) for width, part in zip(widths, spec.epsilons, strict=True)]


def find_reach(widths: Sequence[int], spec: Insensitive, *, clusters: int) -> Fraction:
    """Return the largest multiple of one centroid's loss that a reader of all centroids can see, for this order
    (`order_reach`)."""
    return order_reach(widths, spec.weights, clusters, order=spec.order)


def _find_loss(neighbours: Neighbours, scale: IntArray, widths: Sequence[int], spec: Insensitive) -> Fraction | float:
    """Return the accountant's bound, or for plain sums the public one if that is less: both hold."""
    loss = table_loss(neighbours, scale)
    if spec.statistic == "trimmed":
        return loss
    per_column = [Fraction(width, int(t)) for width, t in zip(widths, scale[0], strict=True)]
    known = order_reach(widths, per_column, len(scale), order=spec.order)
    return min(loss, known)


def _centroid_or_public_scales(
    clusters: OrderClusters, widths: Sequence[int], spec: Insensitive, extremes: Extremes | None
) -> IntArray:
    if extremes is None:
        return np.tile(np.array(public_scales(widths, spec, clusters=clusters.count)), (clusters.count, 1))
    return np.stack([scales_for(extremes.moves[:, place], part) for place, part in enumerate(spec.epsilons)], axis=1)


def _find_mdav(units: IntArray, grids: Sequence[Grid], spec: MdavSpec, progress: Callable[[str], None]) -> list[Statistics]:
    cluster = mdav(units, spec.k, progress=progress).astype(np.intp)
    size = np.bincount(cluster).astype(np.int64)
    order = np.argsort(cluster, kind="stable")
    start = np.cumsum(size) - size
    sums = np.add.reduceat(units[order], start, axis=0)
    return [
        Statistics(
            grid=grid,
            claim=None,
            consistency="none",
            cluster=cluster,
            size=size,
            statistic=np.ascontiguousarray(sums[:, index]),
            scale=np.zeros(len(size), dtype=np.int64),
            loss={},
            is_noisy=False,
        )
        for index, grid in enumerate(grids)
    ]
