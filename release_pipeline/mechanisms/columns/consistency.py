"""Order restored after the noise, if that is free (methods.md section 3), and declared atoms left unmoved.

Everything here is a fixed function of the noisy list and of public facts: the sizes of the clusters (which follow from n and k),
the declared atoms, and for `dp-um` the scale W / eps that anybody can compute. The scales of the iDP methods are confidential,
and nothing here uses them. So it is post-processing of what the claim covers, and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.catalogue import find_claim

NEAR = 2.0  # standard deviations within which a mean of `dp-um` cannot be distinguished from an atom; measured in docs/policy.md
SHARE = 0.02  # of the records: the change of a share at an atom from which `check` warns


def choose_consistency(wanted: str | None, *, method: str, scope: str) -> str:
    """Return `isotonic` or `none`: the wanted one, or by default isotonic if it is free; a combination that breaks the claim is
    refused.

    The centroids of rank clusters are sorted by construction, so restoring the order of the noisy *list* is post-processing of
    what a column claim (and `dp-um`, whose claim is one) already covers. It is not free in two cases, both shown by enumeration
    in tests/oracles: with scope `centroid` of the iDP methods one isotonic value depends on all noisy centroids, and its loss
    tends to the number of clusters times epsilon; with `laplace` the order would be that of the confidential records.
    """
    forbidden = find_claim(method, scope).restores_order
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
    """Return the ascending sequence nearest to `centroids` in squares weighted by the cluster sizes (pool adjacent violators).

    >>> isotonic(np.array([1.0, 4.0, 2.0]), np.array([1, 1, 1])).tolist()
    [1.0, 3.0, 3.0]
    """
    import scipy.optimize  # 0.3 s to import: only where it is used

    optimize: Any = scipy.optimize
    return cast(FloatArray, optimize.isotonic_regression(centroids, weights=sizes.astype(np.float64)).x)


def isotonic_with_atoms(sums: IntArray, sizes: IntArray, atoms: Sequence[int], *, scale: int | None = None) -> FloatArray:
    """Return the ascending sequence nearest to the noisy centroids sums / sizes in which *pins* stay at their atom; grid units.

    A pin is a noisy centroid that equals an atom exactly. Under the iDP methods at scope `column` a cluster of equal values has
    no noise, so the clusters of a heap are pins, while noise hits an atom only by accident. Pins that contradict others, or the
    side of an atom with most centroids, are given up (`_find_atoms`). All from the first to the last kept pin of an atom is at
    the atom; the rest is the isotonic regression of each stretch between, moved back to the atoms around it, which is the
    least-squares fit within these bounds.

    With `scale`, the public scale of every sum (`dp-um`), each cluster has noise, and a centroid that equals an atom shows
    nothing. There the blocks of the isotonic regression that cannot be distinguished from an atom, by `NEAR` standard deviations
    of their own noise, are used as pins.

    >>> isotonic_with_atoms(np.array([0, 0, -6, 9]), np.array([3, 3, 3, 3]), [0]).tolist()
    [0.0, 0.0, 0.0, 3.0]
    """
    declared = np.asarray(atoms, dtype=np.int64)
    plain = isotonic(sums / sizes, sizes) if scale is not None or not len(declared) else None
    if plain is not None and not len(declared):
        return plain
    label = _label(sums, sizes, declared) if plain is None else _label_blocks(plain, sizes, declared, cast(int, scale))
    released = np.empty(len(sums))
    begin, floor = 0, -math.inf
    for place, (first, last) in _find_atoms(label, sizes, len(declared)):
        atom = float(declared[place])
        released[begin:first] = _fit_between(sums[begin:first], sizes[begin:first], floor, atom)
        released[first:last] = atom
        begin, floor = last, atom
    released[begin:] = _fit_between(sums[begin:], sizes[begin:], floor, math.inf)
    return released


def reach_of_atoms(scale: int, k: int, clusters: int) -> float:
    """Return within how many grid steps of an atom `dp-um` cannot distinguish values from it: `NEAR` standard deviations of the
    mean of as many of its clusters as have 2% of the records. If this is less than half a step, shares at atoms stay within two
    points of 100; docs/measured.md has the measurement."""
    return NEAR * _deviation(scale) / k / math.sqrt(max(SHARE * clusters, 1.0))


def _deviation(scale: int) -> float:
    """Return the standard deviation of the discrete Laplace: its variance is 1 / (2 sinh(1/(2t))^2)."""
    return math.sqrt(0.5) / math.sinh(0.5 / scale)


def _fit_between(sums: IntArray, sizes: IntArray, low: float, high: float) -> FloatArray:
    return np.clip(isotonic(sums / sizes, sizes), low, high) if len(sums) else sums / sizes


def _label(sums: IntArray, sizes: IntArray, atoms: IntArray) -> IntArray:
    """Return the position of each noisy centroid: 2 i + 1 at atom i exactly, 2 i between atoms i - 1 and i."""
    whole, rest = np.divmod(sums, sizes)
    below = np.searchsorted(atoms, whole, side="right")  # atoms at or below the centroid
    at = (rest == 0) & (below > 0) & (atoms[np.maximum(below - 1, 0)] == whole)
    return np.where(at, 2 * below - 1, 2 * below).astype(np.int64)


def _label_blocks(fitted: FloatArray, sizes: IntArray, atoms: IntArray, scale: int) -> IntArray:
    """Return these positions for the blocks of an isotonic fit: at the nearest atom if the block's noise could explain the
    difference."""
    start = np.flatnonzero(np.diff(fitted, prepend=-np.inf))
    count = np.diff(start, append=len(fitted))
    value, weight = fitted[start], np.add.reduceat(sizes, start)
    deviation = _deviation(scale) * np.sqrt(count) / weight
    below = np.searchsorted(atoms, value, side="right")
    lower, upper = atoms[np.maximum(below - 1, 0)], atoms[np.minimum(below, len(atoms) - 1)]
    takes_lower = np.abs(value - lower) <= np.abs(upper - value)
    nearest = np.where(takes_lower, np.maximum(below - 1, 0), np.minimum(below, len(atoms) - 1))
    near = np.abs(value - atoms[nearest]) <= NEAR * deviation
    return np.repeat(np.where(near, 2 * nearest + 1, 2 * below), count).astype(np.int64)


def _find_atoms(label: IntArray, sizes: IntArray, count: int) -> list[tuple[int, tuple[int, int]]]:
    """Return the stretch of the list for each atom, ascending: from its first kept pin to after its last one.

    The list is cut into stretches below, at and above every atom, in this order, so that as many records as possible are where
    their stretch says; the pins of an atom within its stretch are kept. With C_s(p) = records with label s among the first p
    clusters, the best cut of them into the stretches up to s has g_s(p) = C_s(p) + max_{q <= p} (g_{s-1}(q) - C_s(q)) such
    records: a running maximum. A single pin far from its atom's position would put many records on the wrong side, and is not
    kept; if two cuts are equally good, the one with more pins is taken.
    """
    pinned = np.flatnonzero(np.bincount(label, minlength=2 * count + 1)[1::2])
    if not len(pinned):
        return []
    # atoms without pins are no bounds: the stretches around them are one
    below = np.searchsorted(pinned, np.arange(count + 1))
    merged = np.empty(2 * count + 1, dtype=np.int64)
    merged[0::2] = 2 * below
    merged[1::2] = 2 * below[:-1] + 1
    label = merged[label]
    starts = np.flatnonzero(np.diff(label, prepend=-1))  # runs of one label are never cut
    run = label[starts]
    weight = 2 * np.add.reduceat(sizes, starts) + run % 2
    ends: IntArray = np.append(starts, len(label))
    best: IntArray = np.zeros(len(run) + 1, dtype=np.int64)
    peaks: list[IntArray] = []
    for state in range(2 * len(pinned) + 1):
        agrees = np.zeros(len(run) + 1, dtype=np.int64)
        np.cumsum(np.where(run == state, weight, 0), out=agrees[1:])
        peaks.append(cast(IntArray, np.maximum.accumulate(best - agrees)))
        best = agrees + peaks[-1]
    stretches: list[tuple[int, tuple[int, int]]] = []
    end = len(run)
    for state in range(2 * len(pinned), 0, -1):
        begin = int(peaks[state].searchsorted(int(peaks[state][end])))
        if state % 2:
            pins: IntArray = np.flatnonzero(run[begin:end] == state) + begin
            if len(pins):
                stretches.append((int(pinned[state // 2]), (int(ends[pins[0]]), int(ends[pins[-1] + 1]))))
        end = begin
    return stretches[::-1]
