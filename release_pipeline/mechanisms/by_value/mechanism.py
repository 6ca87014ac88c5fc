"""Outer mass that noise may have made is moved inwards: a false record far out changes a mean more than all others together.

It reads only fitted masses, noisy counts and declared facts. An end of the domain is either near (the centre is there and cells
are fine) or a tail.

How much evidence outer mass needs follows from its effect. Beyond a boundary is a share S of the variance, R times that of all
the rest. Mass that moves less than noise does anyway (an error of about u = t/n) needs none; mass that would move more needs four
nats. It needs more if it would dominate the column, because the error is R if the mass is false, and at most one if true mass is
moved to the boundary:

    needed = 4 min(1, S / min(2/3, 300 u)) + 2.5 max(0, ln(R / 2))    nats, R at most 1,000

The numbers were chosen on census and wine, with domains of 1.5 and 10 times the largest value, for small errors in the mean over
runs, at both budgets together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value.cells import Facts, Stage, cut_cells, find_cells, first_edges
from release_pipeline.mechanisms.by_value.fit import (
    Masses,
    Quantiles,
    WithLabels,
    add_labels,
    count_labels,
    fit_masses,
    release_values,
    without_labels,
)
from release_pipeline.mechanisms.by_value.noise_laws import Budget, Noise
from release_pipeline.mechanisms.noise import NoiseStream

NEAR_EVIDENCE = 5.0  # nats of evidence that there is anything towards a near end
NEAR_NOISE, TAIL_NOISE = 3.0, 0.5  # fewer records than so many scales of noise count as none, at a near end and in a tail
EVIDENCE, WORTH, WORTH_OF_NOISE = 4.0, 2 / 3, 300.0  # the evidence for mass with a share of the variance, as above
EXCESS, FAIR, MOST = 2.5, 2.0, 1000.0  # and the additional evidence if it would exceed the rest


def cut_noise(masses: Masses, facts: Facts, spread: float) -> Masses:
    """Return the masses without outer mass of fewer records than noise of this scale makes anywhere: it moves to the first
    remaining cell."""
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
    """Return the masses without outer mass that no count supports: up to the point where the counts are likelier with the mass
    beyond than without. Mass with a large effect needs more evidence."""
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
    """Return for each edge of the last stage how many nats likelier all counts are with the mass above it than with nothing
    there."""
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
    """Return the last fine cell with evidence: the last of all if none has any."""
    enough = np.flatnonzero((gains >= needed) & (gains > 0))
    return int(first[enough[-1] + 1]) if len(enough) and enough[-1] + 1 < len(first) else cells


def _last_worthy(masses: Masses, gains: FloatArray, first: npt.NDArray[np.intp], low: int, high: int, unit: float) -> int:
    """Return the last fine cell beyond which the mass has as much evidence as it needs. A part with half of the records beyond it
    is no tail."""
    outermost, last = int(np.searchsorted(first, high)) - 1, high
    whole = _variance(_move(masses, low, high - 1))
    for boundary in range(outermost, 0, -1):
        begin = int(first[boundary])
        if begin <= low or float(masses.share[begin:].sum()) > 0.5:
            break
        rest = _variance(_move(masses, low, begin - 1))
        if gains[boundary] < _needed(whole, rest, unit):
            last = begin
    return last


def _needed(whole: float, rest: float, unit: float) -> float:
    """Return the evidence, in nats, that a tail needs if the variance without it is `rest`."""
    if rest >= whole:
        return 0.0
    times = min(whole / rest - 1, MOST) if rest else MOST
    return EVIDENCE * min(1.0, (1 - rest / whole) / min(WORTH, WORTH_OF_NOISE * unit)) + EXCESS * max(0.0, log(times / FAIR))


def _variance(masses: Masses) -> float:
    """Return the variance of a number drawn by these masses, with all of a cell in its middle."""
    middle = (masses.edges[:-1] + masses.edges[1:]) / 2
    mean = float(masses.share @ middle)
    return float(masses.share @ (middle - mean) ** 2)


def _reach(share: FloatArray, least: float) -> int:
    """Return the first cell at which the cumulated mass exceeds `least`."""
    return min(int(np.searchsorted(np.cumsum(share), least)), len(share) - 1)


def _move(masses: Masses, low: int, high: int) -> Masses:
    """Return the masses with everything outside of these cells moved to the outermost of them."""
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


# `dp-cdf`: counts by value on public cells, finer where the noisy counts justify it, and the quantile function that explains them
# (methods.md section 7).
#
#     Replacing one record takes 1 from one count of a stage and adds 1 to another, whatever its values: the noise of a stage
#     loses 2/t of epsilon (1/s^2 of rho). Which cells the next stage counts, and whether there is one, are functions of the noisy
#     counts so far and of declared facts (`next_stage` is given nothing else but a fit of these, to save it the time); given
# those,
#     it is a stage of fixed cells again. So the whole loses at most the sum over its stages (adaptive composition), which
#     `measure` keeps within the budget in exact numbers. What is made of noisy counts afterwards reads no data, and loses
# nothing.


EARLY_STEPS, LAST_STEPS = 12, 30
CONCENTRATED = 0.6  # share of the records in one cell away from the centre: three stages instead of two
ZOOM = Fraction(2, 5)  # share of the remaining budget, for the second of three stages
PER_NOISE = 0.5  # cells of a stage: 0.5 (n / t)^(2/3) ...
LEAST_CELL = 1.5  # ... each of at least so many noise scales of records ...
MOST_CELLS, MOST_CELLS_OF_MANY, MANY = 110, 150, 50_000  # ... and no more than these
HEAVY = 0.25  # a cell with so much of the mass may be cut finer than its counts allow: the positions in it are not known

Count = Callable[[IntArray], IntArray]


def measure(count: Count, facts: Facts, budget: Budget, stream: NoiseStream) -> list[Stage]:
    """Return the noisy counts of all stages. `count` gives the exact counts of cells, and is the only access to the data."""
    stages: list[Stage] = []
    first: Masses | None = None
    while (following := next_stage(stages, facts, budget, first)) is not None:
        edges, noise = following
        stages.append(Stage(edges, count(edges) + noise.draw(len(edges) - 1, stream), noise))
        first = first or _fit_first(*without_labels(stages, facts))
    return stages


def next_stage(
    stages: Sequence[Stage], facts: Facts, budget: Budget, first: Masses | None = None
) -> tuple[IntArray, Noise] | None:
    """Return the cells that are counted next, and their noise; None if nothing is left to count. It is a function of noisy counts
    and of declared facts: the claim depends on that. `first`: the fit of only the first stage to these noisy counts, if it was
    made before."""
    if not stages:
        return add_labels(first_edges(facts.width, centre=facts.centre, atoms=facts.atoms), facts), budget.first()
    declared = facts
    stages, facts = without_labels(stages, facts)
    first = first or _fit_first(stages, facts)
    zooms = _is_concentrated(first, stages[0].edges)
    if len(stages) == (3 if zooms else 2):
        return None
    masses = first if len(stages) == 1 else fit_masses(stages, facts, before=first, steps=EARLY_STEPS)
    lost = sum((stage.noise.loss for stage in stages), Fraction(0))
    noise = budget.after(lost, ZOOM if zooms and len(stages) == 1 else Fraction(1))
    return add_labels(_refine(stages[-1], masses, facts, noise), declared), noise


def estimate(stages: Sequence[Stage], facts: Facts) -> Masses:
    """Return the masses of the records with a value, by the noisy counts of all stages."""
    stages, facts = without_labels(stages, facts)
    masses = None
    for number in range(1, len(stages) + 1):
        steps = LAST_STEPS if number == len(stages) else EARLY_STEPS
        masses = fit_masses(stages[:number], facts, before=masses, steps=steps)
    if masses is None:
        raise InvalidArgument("nothing was counted.", where="stages")
    spread = sum(stage.noise.spread**-2 for stage in stages) ** -0.5
    return cut_noise(cut_tails(masses, stages, facts), facts, spread)


def _fit_first(stages: Sequence[Stage], facts: Facts) -> Masses:
    """Return the masses that explain the first stage."""
    return fit_masses(stages[:1], facts, before=None, steps=EARLY_STEPS)


def _is_concentrated(masses: Masses, edges: IntArray) -> bool:
    """Return whether one cell that is not a single number has most of the records."""
    held = _sum_within(masses.share, masses.edges, edges)
    most = int(held.argmax())
    return bool(held[most] > CONCENTRATED and edges[most + 1] - edges[most] > 1)


def _refine(last: Stage, masses: Masses, facts: Facts, noise: Noise) -> IntArray:
    """Return the cells of the next stage: each of the last cut in proportion to the sum of (p w^2)^(1/3), the density of the
    quantiser of least error (Panter and Dite), as far as its records are more than noise."""
    n, spread = facts.records, noise.spread * noise.coarse
    likely = cut_noise(masses, facts, last.noise.spread).share
    most = min(MOST_CELLS if n < MANY else MOST_CELLS_OF_MANY, PER_NOISE * (n / spread) ** (2 / 3))
    width, counted = masses.width, np.diff(last.edges)[find_cells(last.edges, masses.edges[:-1])]
    worth = np.where(counted > 1, likely * width * width, 0.0) ** (1 / 3)
    pieces = _sum_within(worth, masses.edges, last.edges) * (most / max(float(worth.sum()), 1e-300))
    held = _sum_within(likely, masses.edges, last.edges)
    wanted = np.minimum(np.ceil(pieces - 0.3), np.maximum(np.floor(n * held / (LEAST_CELL * spread)), 1))
    wanted = np.where(held > HEAVY, np.maximum(wanted, np.minimum(np.ceil(pieces), most)), wanted)
    return cut_cells(last.edges, np.maximum(wanted, 1).astype(np.int64))


def _sum_within(values: FloatArray, fine: IntArray, edges: IntArray) -> FloatArray:
    """Return the sums over the fine cells in each coarser one."""
    return np.add.reduceat(values, np.searchsorted(fine, edges[:-1]))


# One column, end to end: its declared facts, its counts, and the value of each group of ranks.


@dataclass(frozen=True, slots=True)
class ByValue:
    """The declared facts of a column: nothing here comes from the data. Each `k` ranks get one value; `centre` and `atoms` are in
    grid units; `labels` as in `Facts`."""

    grid: Grid
    budget: Budget
    k: int = 1
    centre: int = 0
    atoms: tuple[int, ...] = ()
    labels: int = 0

    @property
    def coded(self) -> Grid:
        """Return the grid, with a point after its upper end for each reason why a record has no value."""
        return replace(self.grid, width=self.grid.width + self.labels)

    def facts(self, records: int) -> Facts:
        """Return what is public before anything is counted."""
        return Facts(self.grid.width, records, self.centre, self.atoms, self.labels)

    def measure(self, count: Count, records: int, stream: NoiseStream) -> list[Stage]:
        """Return the noisy counts of a column of so many records; `count` gives the exact ones. Nothing else is ever learned
        about it."""
        return measure(count, self.facts(records), self.budget, stream)

    def release(self, stages: Sequence[Stage], records: int) -> Tally:
        """Return the values of ranks, k by k: made only from noisy counts and declared facts."""
        facts = self.facts(records)
        values = Quantiles.of(estimate(stages, facts))
        quantiles = WithLabels(values, count_labels(stages, facts), facts.width) if self.labels else values
        atoms = (*self.atoms, *range(facts.width + 1, facts.width + 1 + self.labels))
        released = release_values(quantiles, records, self.k, atoms)
        return Tally(self.coded.values_of(released.entries), released.ends)


def usual_centre(grid: Grid) -> int:
    """Return where cells are finest by default: at 0, or at the end of the domain next to it.

    >>> [usual_centre(Grid.declare(domain, 1)) for domain in ((0, 9), (-5, 5), (3, 9), (-9, -4))]
    [0, 5, 0, 5]
    """
    return int(grid.quantise(np.array([0.0]))[0])
