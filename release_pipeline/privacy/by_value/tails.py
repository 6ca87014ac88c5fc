"""Outer mass that noise may have made moves inwards: a false record far out changes a mean more than all others together.

All of it reads fitted masses, noisy counts and declared facts. An end of the domain is near, where the centre is there and cells
are fine, or a tail.

How much evidence outer mass needs follows from what it does. Beyond a boundary lies a share S of the variance, R times that of
all the rest. Nothing is asked of mass that moves less than noise does anyway (an error of about u = t/n); as much as of a coin,
four nats, of what would move more; and the more of what would be all that is left of the column if it were false, as its error
is R then, and one at most where true mass is moved to the boundary:

    needed = 4 min(1, S / min(2/3, 300 u)) + 2.5 max(0, ln(R / 2))    nats, R at most 1,000

The numbers were chosen on census and wine, with domains of 1.5 and 10 times the largest value, for small errors in the mean over
runs, at both budgets together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.by_value.facts import Facts, Stage
from release_pipeline.privacy.by_value.fit import Masses
from release_pipeline.privacy.grid import FloatArray

NEAR_EVIDENCE = 5.0  # nats, that there is anything towards an end that is near
NEAR_NOISE, TAIL_NOISE = 3.0, 0.5  # records as many as so many scales of noise are none, at a near end and in a tail
EVIDENCE, WORTH, WORTH_OF_NOISE = 4.0, 2 / 3, 300.0  # what mass needs that is worth a share of the variance, as above
EXCESS, FAIR, MOST = 2.5, 2.0, 1000.0  # and what it needs on top where it would be more than the rest


def cut_noise(masses: Masses, facts: Facts, spread: float) -> Masses:
    """Without outer mass of fewer records than noise of this scale makes anywhere: it moves to the first cell that is left."""
    low_is_near, high_is_near = facts.centre == 0, facts.centre == facts.width
    unit = spread / facts.records
    share = masses.share
    low = _reach(share, (NEAR_NOISE if low_is_near else TAIL_NOISE) * unit)
    high = len(share) - 1 - _reach(share[::-1], (NEAR_NOISE if high_is_near else TAIL_NOISE) * unit)
    if high <= low:
        whole = np.zeros_like(share)
        whole[np.searchsorted(np.cumsum(share), 0.5)] = 1
        return replace(masses, share=whole)
    return _move(masses, low, high)


def cut_tails(masses: Masses, stages: Sequence[Stage], facts: Facts) -> Masses:
    """Without outer mass that nothing counted speaks for: up to where the counts are likelier with the mass beyond than with
    none. What would change much needs more."""
    upward = _gains(masses, stages, facts.records)
    downward = _gains(_mirror(masses), [_mirror_stage(stage) for stage in stages], facts.records)
    cells = len(masses.share)
    first = np.searchsorted(masses.edges, stages[-1].edges)  # the first fine cell of each cell that was counted last
    mirrored = cells - first[::-1]
    low_is_near, high_is_near = facts.centre == 0, facts.centre == facts.width
    high = _last_supported(upward, first, cells, NEAR_EVIDENCE if high_is_near else 0.0)
    low = cells - _last_supported(downward, mirrored, cells, NEAR_EVIDENCE if low_is_near else 0.0)
    if high <= low:
        return masses
    unit = sum(stage.noise.spread**-2 for stage in stages) ** -0.5 / facts.records
    high = _last_worthy(masses, upward, first, low, high, unit)
    low = cells - _last_worthy(_mirror(masses), downward, mirrored, cells - high, cells - low, unit)
    return masses if high <= low else _move(masses, low, high - 1)


def _gains(masses: Masses, stages: Sequence[Stage], records: int) -> FloatArray:
    """For each edge of the last stage: how many nats likelier all counts are with the mass above it than with nothing there."""
    edges, total = stages[-1].edges, np.concatenate([[0.0], np.cumsum(masses.share)])
    gains = np.zeros(len(edges))
    for stage in stages:
        expected = records * np.diff(total[np.searchsorted(masses.edges, stage.edges)])
        counts = stage.counts.astype(np.float64)
        gain = stage.noise.log_ratio(counts - expected, counts)
        above = np.append(np.cumsum(gain[::-1])[::-1], 0.0)
        gains += above[np.minimum(np.searchsorted(stage.edges, edges), len(stage.edges) - 1)]
    return gains


def _last_supported(gains: FloatArray, first: npt.NDArray[np.intp], cells: int, needed: float) -> int:
    """Up to which fine cell there is evidence: all, where nothing has any."""
    enough = np.flatnonzero((gains >= needed) & (gains > 0))
    return int(first[enough[-1] + 1]) if len(enough) and enough[-1] + 1 < len(first) else cells


def _last_worthy(masses: Masses, gains: FloatArray, first: npt.NDArray[np.intp], low: int, high: int, unit: float) -> int:
    """Up to which fine cell there is as much evidence of all that lies beyond as it needs. What half of the records are beyond
    of is no tail."""
    outermost, found = int(np.searchsorted(first, high)) - 1, high
    whole = _variance(_move(masses, low, high - 1))
    for boundary in range(outermost, 0, -1):
        begin = int(first[boundary])
        if begin <= low or float(masses.share[begin:].sum()) > 0.5:
            break
        rest = _variance(_move(masses, low, begin - 1))
        if gains[boundary] < _needed(whole, rest, unit):
            found = begin
    return found


def _needed(whole: float, rest: float, unit: float) -> float:
    """The evidence that a tail needs without which the variance is the rest, in nats."""
    if rest >= whole:
        return 0.0
    times = min(whole / rest - 1, MOST) if rest else MOST
    return EVIDENCE * min(1.0, (1 - rest / whole) / min(WORTH, WORTH_OF_NOISE * unit)) + EXCESS * max(0.0, log(times / FAIR))


def _variance(masses: Masses) -> float:
    """Of a number drawn by these masses, all of a cell in its middle."""
    middle = (masses.edges[:-1] + masses.edges[1:]) / 2
    mean = float(masses.share @ middle)
    return float(masses.share @ (middle - mean) ** 2)


def _reach(share: FloatArray, least: float) -> int:
    """The first cell with which so much mass is passed."""
    return min(int(np.searchsorted(np.cumsum(share), least)), len(share) - 1)


def _move(masses: Masses, low: int, high: int) -> Masses:
    """All mass outside of these cells in the outermost of them."""
    share = masses.share.copy()
    share[low] += share[:low].sum()
    share[high] += share[high + 1 :].sum()
    share[:low] = share[high + 1 :] = 0
    return replace(masses, share=share)


def _mirror(masses: Masses) -> Masses:
    last = masses.edges[0] + masses.edges[-1]
    return Masses(last - masses.edges[::-1], masses.share[::-1], masses.level[::-1])


def _mirror_stage(stage: Stage) -> Stage:
    return Stage(stage.edges[0] + stage.edges[-1] - stage.edges[::-1], stage.counts[::-1], stage.noise)
