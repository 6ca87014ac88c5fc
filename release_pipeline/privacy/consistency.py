"""Order restored after the noise, where that is free (methods.md section 3)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import FloatArray, IntArray


def choose_consistency(wanted: str | None, *, method: str, scope: str) -> str:
    """`isotonic` or `none`: what was wanted, or isotonic wherever it is free; a combination that breaks the claim is refused.

    The centroids of rank clusters are sorted by construction, so restoring the order of the noisy *list* is post-processing of
    what a column claim (and `dp-um`, whose claim is one) already covers. It is not free in two cases, both shown by enumeration
    in tests/oracles: with scope `centroid` of the iDP methods one isotonic value depends on all noisy centroids, and its loss
    tends to the number of clusters times epsilon; with `laplace` the order would be that of the confidential records.
    """
    forbidden = ""
    if method == "laplace":
        forbidden = "isotonic consistency over records would use their true order, which laplace does not protect"
    elif method != "dp-um" and scope == "centroid":
        forbidden = "an isotonic value depends on all noisy centroids, so a claim for each centroid on its own would not hold"
    if wanted is None:
        return "none" if forbidden else "isotonic"
    if wanted not in ("isotonic", "none"):
        raise InvalidArgument("consistency is neither 'isotonic' nor 'none'.", where="consistency")
    if wanted == "isotonic" and forbidden:
        raise InvalidArgument(
            f"{forbidden}.",
            where="consistency",
            remedy="Set consistency to none, or use scope column with a cluster method.",
        )
    return wanted


def isotonic(centroids: FloatArray, sizes: IntArray) -> FloatArray:
    """The ascending sequence nearest to `centroids` in squares weighted by the cluster sizes (pool adjacent violators).

    >>> isotonic(np.array([1.0, 4.0, 2.0]), np.array([1, 1, 1])).tolist()
    [1.0, 3.0, 3.0]
    """
    import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]  # 0.3 s to import: only where it is used

    optimize: Any = scipy.optimize
    return cast(FloatArray, optimize.isotonic_regression(centroids, weights=sizes.astype(np.float64)).x)
