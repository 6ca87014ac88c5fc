"""The mean of a column in the confidential table, estimated from released values and public facts.

It is the mean on the declared grid: values beyond the domain count as its ends, missing ones as the card says. Intervals cover
only the noise: they are for the mean of *this* confidential table, not of a wider population.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from datetime import date, timedelta
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np

from release_pipeline.analyst.facts import Facts, NoHonestAnswer
from release_pipeline.analyst.laws import (
    LEAST_DRAWS,
    Reach,
    bound_equal_magnitudes,
    bound_magnitudes,
    bound_sum,
    check_level,
    common_scale,
    declared,
    decline_moved,
    decline_release,
    decline_rows,
    overshoot_of,
    quantile_of_sum,
    reach_of,
    variance_of,
    was_rounded,
)
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.dates import DATE, Clock
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid
from release_pipeline.sentences import ANALYST

IntervalKind: TypeAlias = Literal["law", "bound", "exact", "rerun"]


@dataclass(frozen=True)
class Interval:
    """An estimate (NaN if there is none) with an interval. `kind`: `law` if it follows from the noise distribution, so that it
    covers the truth in a share `level` of releases; `bound` if it covers the truth in that share or more, for all confidential
    data; `exact` without noise; `rerun` if it comes from running the method again on released rows, which is measured and not
    proved. `basis`: a sentence on how the interval was found."""

    estimate: float
    low: float
    high: float
    level: float
    kind: IntervalKind
    basis: str

    @property
    def width(self) -> float:
        """Return the distance from the lower to the upper end."""
        return self.high - self.low


@dataclass(frozen=True)
class Moments:
    """An estimate of a date or time with an interval, whose ends are moved outwards to whole units; otherwise like `Interval`."""

    estimate: date
    low: date
    high: date
    level: float
    kind: IntervalKind
    basis: str

    @property
    def width(self) -> timedelta:
        """Return the distance from the lower to the upper end."""
        return self.high - self.low


def tell_moments(interval: Interval, clock: Clock) -> Moments:
    """Return an interval for numbers of units as one of dates or times. An exact mean becomes the nearest unit."""
    is_exact = interval.kind == "exact"
    low, high = (interval.estimate,) * 2 if is_exact else (math.floor(interval.low), math.ceil(interval.high))
    moments = [clock.moment(end) for end in (interval.estimate, low, high)]
    estimate, first, last = (moment.date() for moment in moments) if clock.type == DATE else moments
    return Moments(estimate, first, last, interval.level, interval.kind, interval.basis)


def estimate_mean(facts: Facts, name: str, values: FloatArray, level: float) -> Interval:
    """Return an interval for the mean of a masked column over all records; raises `NoHonestAnswer` if there is none.

    The mean of the released values is (total + sum_j Z_j)/n: the sum over the p clusters of one draw each, since a cluster's
    value (S_j + Z_j)/c_j is given to c_j records. Restoring the order does not change it: isotonic regression with weights c_j
    pools neighbours into their weighted mean, which leaves sum c_j y_j as it was in every step.

    Moved back into the domain, without restored order: the tail of Z has no memory, so for every sum S of a cluster in [0, cW], S
    + Z given that it is at or below 0 is minus a geometric number of mean g, and likewise at or above cW. Replacing 0 and cW by
    -g and cW + g gives E[S + Z | what was released]: its mean is S exactly, and its variance that of Z less the geometric one
    times the probability of an end. The released values show how many clusters are at an end.

    Otherwise clamping and order are bounded together: centroids are isotone and in the domain, so neither step makes
    sum_j c_j |y_j - x_j| larger, and the mean is off by at most (sum_j |Z_j| + bias)/n.

    Values are then rounded to the grid: that moves each value, and so the mean, by at most half a step, and the interval is
    widened by it at both ends. This is enough too if the ends of the domain are undone. Let 0 be released for S + Z <= h, with h
    <= c/2. For S >= h, S + Z given that is h less a geometric number, and for S < h its mean is between -g and h - g, since the
    mean of how far Z is below u grows with u by no more than u, Z being log-concave. So replacing 0 by -g is off by at most h,
    and the upper end is the same; between them cv is off by at most c/2. The variance of the replacement is not larger than
    before.

    The mean m is in the domain [a, b], so estimate and ends are moved to the nearest points of it: low <= m <= high
    implies max(low, a) <= m <= min(high, b), and coverage is what it was.
    """
    check_level(level)
    why = decline_release(facts)
    column = facts.masked_column(name)
    why = why or decline_moved(facts, name)
    if why:
        raise NoHonestAnswer(f"no mean: {why}", where=name, remedy=ANALYST("advice.ask"))
    _check_rows(facts, name, values)
    centre = float(np.mean(values))
    if not facts.spec.is_noisy and column.clock is not None:
        basis = f"The means of clusters are exact, and each was moved to the nearest {column.clock.unit}."
        return Interval(centre, centre - 0.5, centre + 0.5, level, "bound", basis)
    if not facts.spec.is_noisy:
        basis = "The means of clusters are exact, so that their mean is that of all."
        return Interval(centre, centre, centre, level, "exact", basis)
    grid, _ = declared(column)
    return _cut(_estimate_uncut(facts, name, values, level), grid)


def state_mean(facts: Facts, name: str, values: FloatArray, level: float) -> Interval:
    """Return the mean of a column without noise, which is that of the released values; raises `NoHonestAnswer` if rows were
    dropped or chosen."""
    check_level(level)
    why = decline_rows(facts)
    if why:
        raise NoHonestAnswer(f"no mean: {why}", where=name, remedy=ANALYST("advice.ask"))
    _check_rows(facts, name, values)
    centre = float(np.mean(values))
    return Interval(centre, centre, centre, level, "exact", "No noise: the plain mean of the released column is exact.")


def state_weighted_mean(facts: Facts, name: str, values: FloatArray, weights: FloatArray, level: float) -> Interval:
    """Return the weighted mean of a column without noise by another one, computed from the released rows; raises `NoHonestAnswer`
    if they do not give it."""
    plain = state_mean(facts, name, values, level)
    if float(weights.min()) < 0 or float(weights.sum()) == 0:
        raise InvalidArgument("a weight is negative, or all are 0.", where="weights")
    centre = float(np.average(values, weights=weights))
    return dataclasses.replace(plain, estimate=centre, low=centre, high=centre)


def _check_rows(facts: Facts, name: str, values: FloatArray) -> None:
    if len(values) != facts.rows_out or not facts.rows_out:
        raise NoHonestAnswer(
            f"the data have {len(values):,} records and the card counts {facts.rows_out:,}.",
            where=name,
            remedy="Pass all rows: public facts bound the noise of a whole column, and not of the rows that somebody chose.",
        )


def _cut(interval: Interval, grid: Grid) -> Interval:
    """Return the part of the interval inside the domain, or the nearest point of the domain."""
    lo, hi = float(grid.lo), float(grid.hi)
    estimate, low, high = (min(max(end, lo), hi) for end in (interval.estimate, interval.low, interval.high))
    basis = interval.basis
    if interval.low > hi or interval.high < lo:
        basis += f" All of it lies beyond the domain, as in at most {1 - interval.level:.2g} of all releases: moved to its end."
    elif (low, high) != (interval.low, interval.high):
        basis += " Cut where the domain ends: no mean lies beyond."
    return Interval(estimate, low, high, interval.level, interval.kind, basis)


def _estimate_uncut(facts: Facts, name: str, values: FloatArray, level: float) -> Interval:
    reach = reach_of(facts, name)
    if not facts.clamped:
        half = _half_width(reach, level)
        return _around(facts, name, values, half, level, "law" if reach.exact else "bound")
    if facts.rule.is_public and facts.consistency == "none":
        return _undo_ends(facts, name, values, level)
    if reach.scale is not None:
        magnitudes = bound_equal_magnitudes(reach.scale, reach.draws, level)
    else:
        magnitudes = bound_magnitudes(reach.total, reach.root, reach.draws, level)
    return _around(facts, name, values, magnitudes + reach.bias + _rounding(facts), level, "bound")


def _half_width(reach: Reach, level: float) -> float:
    """Return half the width of the interval for a column's total, in grid steps."""
    if reach.scale is not None:  # scales below it give sums nearer to 0, since all of them are symmetric and unimodal (Bir48)
        return quantile_of_sum(reach.scale, reach.draws, level)
    return bound_sum(reach.root, reach.draws, level) + reach.bias


def _rounding(facts: Facts) -> float:
    """Return how far rounding can have moved a column's total, in grid steps."""
    return 0.5 * facts.rows_in if was_rounded(facts) else 0.0


def _around(facts: Facts, name: str, values: FloatArray, off: float, level: float, kind: Literal["law", "bound"]) -> Interval:
    """Return the mean of the released values, and an interval for that of all records, whose total is at most `off` grid steps
    off."""
    grid, _ = declared(facts.masked_column(name))
    centre, half, domain = float(np.mean(values)), off * float(grid.step) / facts.rows_in, float(grid.hi - grid.lo)
    if kind == "law":
        return Interval(centre, centre - half, centre + half, level, kind, "From the exact law of the noise.")
    if half >= domain:
        raise NoHonestAnswer(
            "no mean: the worst-case bound is wider than the declared domain, and would say nothing.",
            where=name,
            remedy="Ask for a release with clamp: no, or a larger epsilon or k.",
        )
    basis = f"From a worst-case bound: the half-width is {half / domain:.1%} of the domain, whatever the confidential data are."
    return Interval(centre, centre - half, centre + half, level, kind, basis)


def _undo_ends(facts: Facts, name: str, values: FloatArray, level: float) -> Interval:
    column = facts.masked_column(name)
    grid, _ = declared(column)
    if facts.draws < LEAST_DRAWS:
        raise NoHonestAnswer(
            f"no mean: {facts.draws} draws are too few for the approximation that values moved back into the domain need.",
            where=name,
            remedy="Ask for a release with clamp: no.",
        )
    t, k = common_scale(facts, column), facts.k or 1
    mean, spread = overshoot_of(t)
    low = int(np.count_nonzero(values <= float(grid.lo))) // k  # clusters: none has fewer than k records, and one has more
    high = int(np.count_nonzero(values >= float(grid.hi))) // k
    moved = (high - low) * mean * float(grid.step) / facts.rows_in
    deviation = math.sqrt(max(facts.draws * variance_of(t) - (low + high) * spread, 0.0))
    # one record that moves from end to end moves the total by at least 2 (g + 1/2): half of it, if all are there
    lattice = (mean + 0.5) * min((low + high) / facts.draws, 1.0)
    half = NormalDist().inv_cdf((1 + level) / 2) * deviation + lattice + _rounding(facts)
    centre, reach = float(np.mean(values)) + moved, half * float(grid.step) / facts.rows_in
    basis = "From the law of the noise, whose sum is taken as normal; what lies at the ends was put where it lay on average."
    return Interval(centre, centre - reach, centre + reach, level, "law", basis)
