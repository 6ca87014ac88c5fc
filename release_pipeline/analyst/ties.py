"""Ties that only a release has: why a published table is no table to simulate with, and how to make one up from it.

What noise `idp-ls` and `idp-cbls` add follows the data: a cluster of equal records gets none, or little. A released table has k
records or more to a value, cluster by cluster, so that masked again it comes back as it was, and a deviation of 0 says nothing
of what the first release did. Under `dp-um` and `mdav` it is the spread inside the clusters that is gone.

Ties alone are no sign of a release: a column with many zeros, heaps of round numbers or a coarse grid has them too, and they get
no noise in a true release either. So nothing is moved that somebody made up, and two signs are looked for that other tables
hardly have: groups of equal values that begin and end where clusters do, and the released values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import IntArray, as_numbers

MOST = 0.5  # of the different values of a column may stay as they are, or be released ones
BEYOND_CHANCE = 5  # times as many released values as chance would have


def find_unmoved(units: IntArray, cluster: npt.NDArray[np.integer[Any]], scale: IntArray) -> float:
    """The share of the different values (rows of `units`) that a method leaves exactly as they are: all of their records lie in
    clusters of equal records that get no noise.

    In a released column that is every value. In any other a group of equal values begins and ends inside a cluster but for one
    time in k each, and takes the values beside it along.
    """
    if (scale > 0).all():
        return 0.0
    order = np.argsort(cluster, kind="stable")
    start = np.searchsorted(cluster[order], np.arange(len(scale)))
    low, high = (best.reduceat(units[order], start, axis=0) for best in (np.minimum, np.maximum))
    moves = (low != high).any(axis=1) | (scale > 0)
    rows = units[:, 0] if units.shape[1] == 1 else units  # numbers sort faster than rows
    different, own = np.unique(rows, axis=None if rows.ndim == 1 else 0, return_inverse=True)
    moved = np.zeros(len(different), dtype=np.bool_)
    moved[own.reshape(-1)[moves[cluster]]] = True
    return 1 - float(np.mean(moved))


def holds_released_values(units: IntArray, released: IntArray) -> bool:
    """Whether most of the different values of a column are released ones, and that is no chance: rows left out, put in, drawn
    anew or sorted do not hide it. Where released values fill a fifth of the grid or more, nobody can tell."""
    mine, theirs = np.unique(units), np.unique(released)
    chance = len(theirs) / (int(mine[-1]) - int(mine[0]) + 1)
    return float(np.mean(np.isin(mine, theirs))) > max(MOST, BEYOND_CHANCE * chance)


def spread_ties(values: npt.ArrayLike, *, keep: Sequence[Any] = ()) -> npt.NDArray[Any]:
    """A made-up column from a released one: records that share a value are spread evenly between it and the values beside it.

    A released value stands for the middle of its records in rank; between two middles values rise in a straight line, which goes
    on beyond the first and the last. Values in `keep` stay: those that the confidential column has many of, like 0 for who had
    none. Rows stay where they are; which record of a value gets which number goes by their order, which says nothing. Dates and
    times (of NumPy) are spread like numbers.

    >>> spread_ties([10, 10, 10, 10, 30, 30, 30, 30]).tolist()
    [2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5]
    """
    given: npt.NDArray[Any] = np.asarray(values)
    if given.dtype.kind == "M":
        kept: npt.NDArray[np.datetime64] = np.array(list(keep), dtype="datetime64[s]")
        seconds = given.astype("datetime64[s]").astype(np.int64)
        spread_seconds = np.rint(spread_ties(seconds, keep=kept.astype(np.int64).tolist())).astype(np.int64)
        return spread_seconds.astype("datetime64[s]").astype(given.dtype)
    numbers = as_numbers(given).astype(np.float64)
    if len(numbers) == 0:
        raise InvalidArgument("there are no records.", where="values")
    order = np.argsort(numbers, kind="stable")
    different, count = np.unique(numbers, return_counts=True)
    end = np.cumsum(count)
    stays = np.isin(different, np.asarray(keep, dtype=np.float64))
    ranks = np.concatenate([(end - count / 2)[~stays], (end - count)[stays], end[stays]])
    places = np.concatenate([different[~stays], different[stays], different[stays]])
    by_rank = np.lexsort((places, ranks))
    ranks, places = ranks[by_rank], places[by_rank]
    if len(ranks) > 1:
        rise = np.diff(places) / np.maximum(np.diff(ranks), 0.5)
        first, last = places[0] - rise[0] * ranks[0], places[-1] + rise[-1] * (len(numbers) - ranks[-1])
        ranks, places = np.array([0.0, *ranks, len(numbers)]), np.array([first, *places, last])
    spread = np.empty_like(numbers)
    spread[order] = np.interp(np.arange(len(numbers)) + 0.5, ranks, places)
    return spread
