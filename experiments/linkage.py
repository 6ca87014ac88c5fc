"""Record linkage of whole tables (KDP13): how many released records can be matched to their originals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.samples import Share, measure_share
from release_pipeline.mechanisms.basis.utility import variance_of
from release_pipeline.mechanisms.risk.risk import link_owners, number_entries


def record_linkage(
    original: npt.ArrayLike,
    released: npt.ArrayLike,
    own: npt.ArrayLike,
    *,
    positions: npt.ArrayLike,
    groups: npt.ArrayLike | None = None,
) -> Share:
    """The share of released records whose own original is among the originals nearest to them: 1/|G| for each if it is in G,
    else 0.

    KDP13's measure, Euclidean on z-scores of the original (a constant column counts in its own unit). `own[i]` is the row of the
    original of released row i; `positions` are the released rows to try. With `groups`, a number for each original, only
    originals of the same group as the own one are compared (KEA18's linking risk within classes).
    """
    x, y, tried = np.asarray(original, dtype=np.float64), np.asarray(released, dtype=np.float64), np.asarray(positions)
    deviations = np.sqrt([variance_of(column) for column in x.T])
    least, unit = x.min(axis=0), np.where(deviations > 0, deviations, 1.0)
    mine = np.asarray(own, dtype=np.int64)[tried]
    group = None if groups is None else number_entries(np.asarray(groups))
    [linked] = link_owners((x - least) / unit, (y[tried] - least) / unit, mine, [mine], groups=group)
    return measure_share(linked, among=len(y))
