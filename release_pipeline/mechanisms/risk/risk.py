"""How many released records can be linked to their persons: group sizes, and what a group reveals about a secret (methods.md
section 6).

Record linkage (KDP13) compares every record tried with all originals and counts all that are equally near. Groups are of records
with equal quasi-identifiers, given as integers. `distinct_diversity` is l of MKG07 in its simplest form.

All are computed against confidential data or reveal something about them: figures for a review, not for the public.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray, as_numbers
from release_pipeline.mechanisms.clusters.hierarchy import as_integers
from release_pipeline.mechanisms.risk.neighbours import Neighbours


def link_owners(
    known: FloatArray, points: FloatArray, group_row: IntArray, owners: Sequence[IntArray], *, groups: IntArray | None = None
) -> list[FloatArray]:
    """Return for each point and each of several rows of `known` that may be its owner: 1/|G| if that row is in the set G of rows
    nearest to the point, else 0. One search gives them all.

    `groups` has a number from 0 for each row of `known`, and `group_row` a row of `known` for each point: only rows of its group
    are compared.
    """
    if groups is not None and len(groups) and int(groups.max()) > 0:
        size = max(float(known.max(initial=0)), float(np.abs(points).max(initial=0)))
        apart = groups * np.ceil(4 * size * np.sqrt(known.shape[1]) + 1)  # so far apart that no other group is ever nearer
        known, points = np.column_stack([known, apart]), np.column_stack([points, apart[group_row]])
    neighbours = Neighbours(known, power=2)
    linked = [np.zeros(len(points)) for _ in owners]
    for near in neighbours.search(points):
        block = slice(near.first, near.first + len(near.distance))
        number = near.total(neighbours.weight[near.member])
        who = np.repeat(np.arange(len(near.distance)), np.diff(near.start))
        for owner, share in zip(owners, linked, strict=True):
            found = near.member == neighbours.place[owner[block]][who]
            share[block] = near.total(found.astype(np.int64)) / number
    return linked


def distinct_diversity(groups: npt.ArrayLike, values: npt.ArrayLike) -> int:
    """Return l: the fewest different values that a group has (0 if there is no record). A blank is a value like any other.

    >>> distinct_diversity([1, 1, 2, 2], [7, 8, 7, 7])
    1
    """
    group, value = number_entries(as_integers(groups, "groups")), number_entries(as_numbers(values))
    if len(group) != len(value):
        raise InvalidArgument("there is not one value for each record of the groups.", where="values")
    if not len(group):
        return 0
    m = int(value.max()) + 1
    pairs = np.unique(group * m + value)
    return int(np.bincount(pairs // m).min())


def number_entries(column: npt.NDArray[Any]) -> IntArray:
    """Return the position of each number among the different ones, ascending."""
    return np.unique(column, return_inverse=True)[1].astype(np.int64, copy=False)
