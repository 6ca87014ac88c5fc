"""What a look does not show, for single people could be told by it: figures that fewer than ten records stand for.

A look is confidential, and read by who chooses parameters, not by who may see records. Tables that anybody may see, and those
that are made up, are shown whole.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from release_pipeline.stages.measures.subgroups import LEAST

Numbers = npt.NDArray[np.float64]
Which = npt.NDArray[np.bool_]


def pick_places(places: Numbers, ordered: Numbers, order: Iterable[int] | None = None) -> Which:
    """Which places of ascending values may be told: ten records at least lie up to one and from it on, and ten between two.
    `order`: in which they are taken, so that the first are kept."""
    up_to, before = np.searchsorted(ordered, places, side="right"), np.searchsorted(ordered, places, side="left")
    kept = np.zeros(len(places), dtype=np.bool_)
    for at in range(len(places)) if order is None else order:
        is_inside = up_to[at] >= LEAST and len(ordered) - before[at] >= LEAST
        between = np.abs(up_to[kept] - up_to[at])
        kept[at] = is_inside and bool(np.all((between >= LEAST) | (between == 0)))
    return kept


def pick_shares(shares: Numbers, count: int) -> Which:
    """Which shares of so many records may be told: neither of one to nine records, nor of all but so few."""
    at = np.rint(shares * count)
    return ~(((at > 0) & (at < LEAST)) | ((count - at > 0) & (count - at < LEAST)))


def pick_groups(counts: npt.NDArray[np.int64]) -> Which:
    """Which groups may be told: those of ten records at least; where one alone is left out, the smallest of the others is too,
    for the whole less the others would tell it."""
    kept = counts >= LEAST
    if int(((counts > 0) & ~kept).sum()) == 1 and kept.any():
        kept[int(np.argmin(np.where(kept, counts, np.iinfo(np.int64).max)))] = False
    return kept
