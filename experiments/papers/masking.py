"""Masking a whole table for an experiment: what a release does to its numbers, once for all runs of a setting and then a
secret at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from experiments.papers.tables import Numbers, Source
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import Epsilon, mdav, order_clusters
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.columns.methods import Claim, Statistics, add_noise, compute_statistics
from release_pipeline.mechanisms.noise import Context

TRIES, NEAR, AIM = 12, 0.999, 0.9998  # aimed at a little below the share, and taken from 0.999 of it
KNOWN = bytes(32)  # the order of ties: all runs of a setting have the same clusters


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank method on every column, epsilon split equally over them, as a policy has it."""

    method: str
    k: int
    epsilon: str
    scope: str = "centroid"
    consistency: str = "none"


def prepare_columns(source: Source, how: Rank, context: Sequence[Context]) -> list[Statistics]:
    """The exact part of each column."""
    shares = Epsilon.of(how.epsilon).split([1] * len(source.grids))
    return [_prepare(source, place, how, share, context) for place, share in enumerate(shares)]


def prepare_at_exact_loss(source: Source, how: Rank, context: Sequence[Context]) -> list[Statistics]:
    """The same with scales in the proportions of the method, made such that the exact joint loss of each column on these very
    data is its share of epsilon, at most that and as near as whole numbers allow.

    Only a claim of iDP can be made of this, whatever the method: the factor depends on the data. As it is one for the whole list,
    consistency is free.
    """
    plain = replace(how, scope="centroid", consistency="none")
    made: list[Statistics] = []
    for place, share in enumerate(Epsilon.of(how.epsilon).split([1] * len(source.grids))):
        exact = _find_exact_loss(lambda used, place=place: _prepare(source, place, plain, used, context), share)
        made.append(replace(exact, claim=Claim("idp", share, "column"), consistency=how.consistency))
    return made


def _find_exact_loss(prepare: Callable[[Epsilon], Statistics], share: Epsilon) -> Statistics:
    """Of scales for ever other epsilons those whose loss is the nearest to `share` and not above. The loss is proportional to
    epsilon, but for the rounding of scales: first by proportion, then by halves."""
    low, high, used, aim = 0, inf, share.nano, AIM
    found: Statistics | None = None
    for _ in range(TRIES):
        exact = prepare(Epsilon(used))
        ratio = exact.loss["column"] / float(share)
        if ratio <= 1:
            found, low = exact, used
            if ratio == 0 or ratio >= NEAR:
                break
        else:
            high, aim = used, aim**3  # ever lower, until there is one from below
        used = int(used / ratio * aim)
        if not low < used < high:
            used = int((low + high) / 2)
    if found is None:
        raise InvalidArgument("no scales have this loss.", where="epsilon")
    return found


def draw_means(columns: Sequence[Statistics], secret: bytes, context: Sequence[Context]) -> list[Numbers]:
    """The noisy mean of each cluster, column by column: what this secret makes of them. As in the papers it may lie between the
    points of the grid."""
    return [add_noise(part, on_grid=False, secret=secret, context=(*context, place)) for place, part in enumerate(columns)]


def find_means(columns: Sequence[Statistics]) -> list[Numbers]:
    """The same without noise."""
    return [part.grid.restore(part.statistic / part.size) for part in columns]


def spread(columns: Sequence[Statistics], means: Sequence[Numbers]) -> Numbers:
    """Each record's means, in record order."""
    return np.stack([mean[part.cluster] for part, mean in zip(columns, means, strict=True)], axis=1)


def release(columns: Sequence[Statistics], secret: bytes, context: Sequence[Context]) -> Numbers:
    """Masked records in record order: what this secret makes of them."""
    return spread(columns, draw_means(columns, secret, context))


def release_all(columns: Sequence[Statistics], secrets: Sequence[bytes], context: Sequence[Context]) -> Iterator[Numbers]:
    """One masked table for each secret."""
    for secret in secrets:
        yield release(columns, secret, context)


def cluster_records(source: Source, clusters: str, k: int) -> IntArray:
    """The cluster of each record, of all columns together: MDAV's, or along an order, corner or hilbert."""
    if clusters == "mdav":
        return mdav(source.units, k)
    widths = [grid.width for grid in source.grids]
    return order_clusters(source.units, widths, k, order=clusters).cluster


def average(source: Source, clusters: Sequence[IntArray]) -> Numbers:
    """Each record's exact means, in record order; the clusters are of each column."""
    means = [np.bincount(cluster, x) / np.bincount(cluster) for cluster, x in zip(clusters, source.values.T, strict=True)]
    return np.stack([mean[cluster] for mean, cluster in zip(means, clusters, strict=True)], axis=1)


def add_losses(columns: Sequence[Statistics]) -> float:
    """The exact losses of the columns' lists, added up: what composition would charge, were they known, and an upper bound on all
    columns together, whose worst neighbours are different people."""
    return sum(part.loss["column"] for part in columns)


def _prepare(source: Source, place: int, how: Rank, share: Epsilon, context: Sequence[Context]) -> Statistics:
    return compute_statistics(
        source.values[:, place],
        grid=source.grids[place],
        method=how.method,
        epsilon=share,
        k=None if how.method == "laplace" else how.k,
        scope=how.scope,
        consistency=how.consistency,
        secret=KNOWN,
        context=(*context, place),
    )
