"""How many released records can be told to be whose: linkage, group sizes, and what a group tells of a secret (methods.md
section 6).

Record linkage (KDP13) compares every record tried with all originals and counts all that are equally near. Groups are of records
with equal quasi-identifiers, given as integers. `distinct_diversity` is l of MKG07 in its simplest form.

All are computed against confidential data or tell about them: figures for a review, not for the public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray, as_matrix, as_numbers
from release_pipeline.mechanisms.basis.samples import Share, measure_share
from release_pipeline.mechanisms.basis.utility import variance_of
from release_pipeline.mechanisms.clusters.hierarchy import as_integers
from release_pipeline.mechanisms.risk.neighbours import Neighbours

_LISTED = 1 << 20  # whole numbers in a row that are looked up in a list


def record_linkage(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    own: npt.ArrayLike,
    *,
    positions: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
    among: int | None = None,
    deviations: Sequence[float] | None = None,
) -> Share:
    """The share of released records whose own original is among the originals nearest to them: 1/|G| for each if it is in G,
    else 0.

    KDP13's measure, Euclidean on z-scores of the original (a constant column counts as it stands, in its own unit). `own[i]` is
    the row of the original of released row i; `positions` are the released rows to try, without repetition: all of them, or a
    random sample, for which the share then has its interval. With `groups`, a number for each original, only originals of the
    same group as the own one are compared with (KEA18's linking risk within classes). `deviations`: those that z-scores are made
    with, where they are of other records than these originals.
    """
    y = as_matrix(released)
    known, least, deviation = _scale(as_matrix(original), deviations)
    n = len(known)
    if len(least) != y.shape[1]:
        raise InvalidArgument("the released table has other columns than the original one.")
    mine, tried = as_integers(own, "own"), as_integers(positions, "positions")
    if len(mine) != len(y):
        raise InvalidArgument("there is not one original for each released record.", where="own")
    if not _all_within(tried, len(y)) or not _all_within(mine, n):
        raise InvalidArgument("a row is named that the table does not have.", where="own or positions")
    if len(np.unique(tried)) != len(tried):
        raise InvalidArgument("a released record is named twice.", where="positions")
    mine = mine[tried]
    among = len(y) if among is None else among
    if not len(tried):
        return measure_share([], among=among)

    points = np.empty((len(tried), y.shape[1]))
    for j in range(y.shape[1]):
        points[:, j] = (y[tried, j] - least[j]) / deviation[j]
    group = None if groups is None else number_entries(_as_groups(groups, n))
    return measure_share(link_each(known, points, mine, groups=group), among=among)


def link_each(known: FloatArray, points: FloatArray, own: IntArray, *, groups: IntArray | None = None) -> FloatArray:
    """For each point 1/|G| if the row of `known` that is its `own` is in the set G of rows nearest to it, else 0.

    `groups` has a number from 0 for each row of `known`: only rows of the group of the own one are compared. `known` may be
    overwritten.
    """
    return link_owners(known, points, own, [own], groups=groups)[0]


def link_owners(
    known: FloatArray, points: FloatArray, own: IntArray, owners: Sequence[IntArray], *, groups: IntArray | None = None
) -> list[FloatArray]:
    """The same for each of several rows of `known` that a point may be linked to, by one search: `own` says in which group."""
    if groups is not None and len(groups) and int(groups.max()) > 0:
        size = max(float(known.max(initial=0)), float(np.abs(points).max(initial=0)))
        apart = groups * np.ceil(4 * size * np.sqrt(known.shape[1]) + 1)  # so far apart that no other group is ever nearer
        known, points = np.column_stack([known, apart]), np.column_stack([points, apart[own]])
    neighbours = Neighbours(known, power=2, consume=True)
    linked = [np.zeros(len(points)) for _ in owners]
    for near in neighbours.search(points):
        block = slice(near.first, near.first + len(near.distance))
        number = near.total(neighbours.weight[near.member])
        who = np.repeat(np.arange(len(near.distance)), np.diff(near.start))
        for owner, share in zip(owners, linked, strict=True):
            found = near.member == neighbours.place[owner[block]][who]
            share[block] = near.total(found.astype(np.int64)) / number
    return linked


def _scale(x: FloatArray, told: Sequence[float] | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Z-scores of every column, from its least value on; that value, and the deviation."""
    known, least, deviations = np.empty(x.shape), np.empty(x.shape[1]), np.empty(x.shape[1])
    for j in range(x.shape[1]):
        column = x[:, j].astype(np.float64)
        deviation = math.sqrt(variance_of(column)) if told is None else told[j]
        least[j] = column.min()  # differences to a value of the column lose least
        deviations[j] = deviation or 1.0
        known[:, j] = (column - least[j]) / deviations[j]
    return known, least, deviations


def distinct_diversity(groups: npt.ArrayLike, values: npt.ArrayLike) -> int:
    """l: the fewest different values that a group has (0 if there is no record). A blank is a value like any other.

    >>> distinct_diversity([1, 1, 2, 2], [7, 8, 7, 7])
    1
    """
    group, value = number_entries(_as_groups(groups)), number_entries(as_numbers(values))
    if len(group) != len(value):
        raise InvalidArgument("there is not one value for each record of the groups.", where="values")
    if not len(group):
        return 0
    m = int(value.max()) + 1
    pairs = np.unique(group * m + value)
    return int(np.bincount(pairs // m).min())


def number_entries(column: npt.NDArray[Any]) -> IntArray:
    """The place of each number among the different ones, ascending. Whole ones that lie near together are looked up in a list."""
    if column.dtype.kind == "i" and len(column):
        lowest, highest = int(column.min()), int(column.max())
        if highest - lowest < _LISTED:
            places = column.astype(np.int64) - lowest
            occurs = np.zeros(highest - lowest + 1, dtype=np.bool_)
            occurs[places] = True
            return (np.cumsum(occurs) - 1)[places]
    return np.unique(column, return_inverse=True)[1].astype(np.int64, copy=False)


def _as_groups(groups: npt.ArrayLike, n: int | None = None) -> IntArray:
    array = as_integers(groups, "groups")
    if n is not None and len(array) != n:
        raise InvalidArgument("there is not one group for each original.", where="groups")
    return array


def _all_within(rows: IntArray, n: int) -> bool:
    return not len(rows) or (int(rows.min()) >= 0 and int(rows.max()) < n)
