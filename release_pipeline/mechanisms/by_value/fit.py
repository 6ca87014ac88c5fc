"""Masses that explain noisy counts: the likely number of records in each cell, given all stages and typical shapes of columns.

Noisy counts by themselves are not a distribution: they are negative here and there, and in a long empty tail noise looks like
records that carry most of the variance. So masses p of fine cells are fitted, p = softmax(f + s a + log width), with the largest

    - sum over stages and cells of sqrt((y - n p)^2 + (d t)^2) / t       the likelihood of Laplace noise, smooth near 0
    - f' K^-1 f / 2                                                      f is smooth: Matern 3/2 over octaves
    - sum of log(1 + exp(bends of f))                                    a density may bend down for nothing, and up at a price
    - sum of log(1 + a^2)                                                spikes are cheap where counts prove them (Student t)

The fit reads noisy counts and declared facts: it is post-processing, so floating-point numbers are safe. Steps are damped
Gauss-Newton steps, 8 to 17 of them: gradient methods have not converged after a thousand, at five times the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value.cells import FINE, Facts, Stage, find_cells, first_edges, join_edges
from release_pipeline.mechanisms.clusters.rank import cut_ranks

DEVIATION, LENGTH, NUGGET = 8.0, 2.0, 0.1  # of f: nats, octaves, nats
SPIKE = 0.3  # nats of a unit of a
MOST_CELLS = 130  # fine cells and those of all stages; beyond it fine cells are left out
CLOSE = 1e-2  # nats: a step that gains less is the last
LONGEST = 4.0  # nats that a step may move f anywhere
SHORTER = 12  # times that a step is made a quarter as long


@dataclass(frozen=True, slots=True)
class Masses:
    """The share of the records in each cell. `level` is f + s a, the fitted function, from which a fit of finer cells starts."""

    edges: IntArray
    share: FloatArray
    level: FloatArray

    @property
    def width(self) -> FloatArray:
        """Return how many numbers each cell has."""
        return np.diff(self.edges).astype(np.float64)


def fit_masses(stages: Sequence[Stage], facts: Facts, *, before: Masses | None, steps: int) -> Masses:
    """Return the masses that best explain the counts of these stages."""
    model = _Model(stages, facts, None if before is None else before.edges)
    return model.solve(np.zeros(model.cells) if before is None else model.resample(before), steps)


class _Model:
    """The function that is maximised, for one set of cells."""

    def __init__(self, stages: Sequence[Stage], facts: Facts, before: IntArray | None) -> None:
        finest = first_edges(facts.width, centre=facts.centre, atoms=facts.atoms, per_octave=FINE)
        coarse = first_edges(facts.width, centre=facts.centre, atoms=facts.atoms)
        counted = [stage.edges for stage in stages]
        edges = join_edges([finest if before is None else before, *counted])
        self.edges = edges if len(edges) <= MOST_CELLS + 1 or len(stages) == 1 else join_edges(counted)
        self.stages, self.records = stages, facts.records
        width, of_parent = np.diff(self.edges), np.diff(coarse)
        self.cells = len(width)
        self.base = np.log(width / of_parent[find_cells(coarse, self.edges[:-1])])
        octaves = (len(finest) - 1) / FINE
        self.density = self.cells / octaves  # cells in an octave, on the whole
        self.inside = [find_cells(stage.edges, self.edges[:-1]) for stage in stages]  # the counted cell of each fine one
        self.together = [inside[:, None] == inside for inside in self.inside]  # whether two fine cells are of one counted cell
        alone = np.isin(self.edges[:-1], facts.atoms) & (width == 1)
        self.precision, self.bends = _smoothness(alone, find_cells(self.edges, np.array([facts.centre]))[0], self.density)

    def resample(self, before: Masses) -> FloatArray:
        """Return the start of the fit: the level of an earlier fit, smoothed over half an octave."""
        middle, earlier = _middles(self.edges), _middles(before.edges)
        level = np.interp(middle, earlier, before.level)
        reach = max(1, int(self.density / 2))
        padded = np.pad(level, reach, mode="edge")
        level = np.convolve(padded, np.ones(2 * reach + 1) / (2 * reach + 1), "valid")
        return level - level.mean()

    def solve(self, level: FloatArray, steps: int) -> Masses:
        """Return the masses after damped Gauss-Newton steps from `level`, until they gain nothing."""
        at = self._at(level, np.zeros(self.cells))
        damping = 1e-2
        for _ in range(steps):
            expansion = self._expand(at)
            better, step = None, (np.zeros(self.cells), np.zeros(self.cells))
            for _ in range(6):
                try:
                    step = expansion.step(damping)
                except np.linalg.LinAlgError:
                    damping *= 10
                    continue
                tried = self._at(at.level + step[0], at.spikes + step[1])
                if tried.value < at.value:
                    better = tried
                    break
                damping = max(damping * 8, 1e-3)
            else:  # with many counts no tried damping is enough: the direction is still downhill, so shorter steps follow
                for shorter in 0.25 ** np.arange(1, SHORTER + 1):
                    tried = self._at(at.level + shorter * step[0], at.spikes + shorter * step[1])
                    if tried.value < at.value:
                        better = tried
                        break
            if better is None:
                break
            gain, at, damping = at.value - better.value, better, max(damping / 4, 1e-6)
            if gain < CLOSE:
                break
        return Masses(self.edges, at.share, at.level + SPIKE * at.spikes)

    def _at(self, level: FloatArray, spikes: FloatArray) -> _Point:
        logs = level + SPIKE * spikes + self.base
        share = np.exp(logs - logs.max())
        share /= share.sum()
        value = 0.5 * float(level @ (self.precision @ level)) + float(np.log1p(spikes * spikes).sum())
        residuals: list[FloatArray] = []
        for stage, inside in zip(self.stages, self.inside, strict=True):
            held = np.bincount(inside, weights=share, minlength=len(stage.counts)).astype(np.float64)
            residual: FloatArray = self.records * held - stage.counts.astype(np.float64)
            value += float(np.hypot(residual, stage.noise.blunt * stage.noise.spread).sum()) / stage.noise.spread
            residuals.append(residual)
        bends = self.bends @ level
        value += float(np.logaddexp(0, bends).sum())
        return _Point(level, spikes, share, residuals, bends, value)

    def _expand(self, at: _Point) -> _Expansion:
        """Return the expansion of the function around a point. A count with a share h moves by p_i (1[i in it] - h) with the
        level of cell i: the outer product, weighed by w, is p_i p_j (w 1[i and j in it] - w_i h_i - w_j h_j + sum w h^2)."""
        n, share = self.records, at.share
        pull, mixed, constant = np.zeros(self.cells), np.zeros(self.cells), 0.0
        outer = np.zeros((self.cells, self.cells))
        for stage, inside, together, residual in zip(self.stages, self.inside, self.together, at.residuals, strict=True):
            noise = stage.noise
            weight = 1 / (noise.spread * np.hypot(residual, noise.blunt * noise.spread))
            held = (residual + stage.counts) / n
            pull += n * (weight * residual)[inside]
            mixed += (weight * held)[inside]
            constant += float(weight @ (held * held))
            outer += together * weight[inside]
        outer -= mixed
        outer -= mixed[:, None] - constant
        scaled = n * share
        outer *= scaled
        outer *= scaled[:, None]
        return _Expansion(
            slopes=share * (pull - pull @ share),
            outer=outer,
            smooth=self.precision @ at.level + self.bends.T @ _logistic(at.bends),
            stiff=self.precision + self.bends.T @ (_bound_logistic(at.bends)[:, None] * self.bends),
            spikes=at.spikes,
        )


@dataclass(frozen=True, slots=True)
class _Expansion:
    """Gradient and Gauss-Newton curvature in (f, a). For the likelihood, with c nats for a unit of a: `slopes` and c `slopes`; A
    = `outer`, c A and c^2 A. For the prior of f: `smooth` and `stiff`. Each a has a separate term."""

    slopes: FloatArray
    outer: npt.NDArray[np.float64]
    smooth: FloatArray
    stiff: npt.NDArray[np.float64]
    spikes: FloatArray

    def step(self, damping: float) -> tuple[FloatArray, FloatArray]:
        """Return the step to the least value of the quadratic, at most `LONGEST`. Half of the unknowns are eliminated: with B =
        `stiff` and E that of a, both damped, the second equations less c times the first are E da = c B df + v, where v is c
        `smooth` minus the gradient of only a; and so (A + c^2 A E^-1 B + B) df = -`slopes` - `smooth` - c A E^-1 v."""
        wide = 1 + self.spikes * self.spikes
        loose = 1 / (2 / wide + damping)
        apart = SPIKE * self.smooth - 2 * self.spikes / wide
        stiff = self.stiff.copy()
        stiff[np.diag_indices(len(stiff))] += damping
        moved = self.outer @ (SPIKE * SPIKE * loose[:, None] * stiff)
        moved += self.outer
        moved += stiff
        right = -self.slopes - self.smooth - SPIKE * (self.outer @ (loose * apart))
        level: FloatArray = np.asarray(np.linalg.solve(moved, right), dtype=np.float64)
        spikes: FloatArray = loose * (SPIKE * (stiff @ level) + apart)
        short = min(1.0, LONGEST / max(float(np.abs(level).max()), 1e-300))
        level *= short
        spikes *= short
        return level, spikes


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of a fit, and its value: the lower the better."""

    level: FloatArray
    spikes: FloatArray
    share: FloatArray
    residuals: Sequence[FloatArray]
    bends: FloatArray
    value: float


def _smoothness(
    alone: npt.NDArray[np.bool_], centre: int, density: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return K^-1, and the bends of f, by octaves: for all consecutive cells except declared atoms, which differ from their
    neighbours. No bend includes the centre, where many columns have a spike."""
    m, chain = len(alone), np.flatnonzero(~alone)
    precision = np.zeros((m, m))
    precision[alone, alone] = 1 / DEVIATION**2
    precision[np.ix_(chain, chain)] = _inverse_kernel(len(chain), round(density, 2))
    triples = np.stack([chain[:-2], chain[1:-1], chain[2:]], axis=1)
    triples = triples[(triples[:, 0] > centre) | (triples[:, 2] < centre)]
    bends = np.zeros((len(triples), m))
    places = np.arange(len(triples))
    bends[places, triples[:, 0]] = bends[places, triples[:, 2]] = density
    bends[places, triples[:, 1]] = -2 * density
    return precision, bends


@lru_cache(maxsize=64)
def _inverse_kernel(cells: int, density: float) -> npt.NDArray[np.float64]:
    """Return the inverse of K for so many consecutive cells, `density` of them in an octave."""
    place = np.arange(cells) / density
    distance = np.abs(place[:, None] - place[None, :]) * (np.sqrt(3.0) / LENGTH)
    kernel = DEVIATION**2 * (1 + distance) * np.exp(-distance) + (NUGGET**2 + 1e-8) * np.eye(cells)
    inverse = np.asarray(np.linalg.inv(kernel), dtype=np.float64)
    inverse.setflags(write=False)
    return inverse


def _middles(edges: IntArray) -> FloatArray:
    return (edges[:-1] + edges[1:]) / 2


def _logistic(x: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-np.clip(x, -50, 50)))


def _bound_logistic(x: FloatArray) -> FloatArray:
    """Return tanh(x/2) / (2 x): a parabola with this curvature bounds log(1 + exp) from above, and touches it at x (Jaakkola and
    Jordan)."""
    near = np.abs(x) < 1e-4
    safe = np.where(near, 1.0, x)
    return np.where(near, 0.25, np.tanh(safe / 2) / (2 * safe))


# The quantile function of fitted masses: the value of each rank.


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Grid units by share of the records: linear within cells, `shares` and `units` where the lines meet."""

    shares: FloatArray
    units: FloatArray

    @classmethod
    def of(cls, masses: Masses) -> Quantiles:
        """Return the quantile function in which each cell with mass has its numbers evenly, from the first to the last."""
        total = np.concatenate([[0.0], np.cumsum(masses.share)])
        held = masses.share > 0
        shares = np.stack([total[:-1][held], total[1:][held]], axis=1).ravel() / total[-1]
        units = np.stack([masses.edges[:-1][held], masses.edges[1:][held] - 1], axis=1).ravel()
        return cls(shares, units.astype(np.float64))

    def at(self, shares: FloatArray) -> FloatArray:
        """Return the units at these shares."""
        return np.interp(shares, self.shares, self.units)

    def of_ranks(self, records: int) -> FloatArray:
        """Return the unit of each of so many ranks: rank i is at the share (i + 1/2) / n."""
        return self.at((np.arange(records) + 0.5) / records)


def release_values(quantiles: Quantiles | WithLabels, records: int, k: int, atoms: tuple[int, ...]) -> Tally:
    """Return the tally of the ranks' values: each group of k gets its mean, moved to the grid. In a group across the edge of an
    atom the majority decides: it gets the atom, or the mean of the ranks that are not at one."""
    start, size = cut_ranks(records, k)
    units = np.rint(quantiles.of_ranks(records))
    released = units if k == 1 else _average(units, start, size, atoms)
    return Tally.of_ascending(released.astype(np.int64), np.cumsum(size))


def _average(units: FloatArray, start: IntArray, size: IntArray, atoms: tuple[int, ...]) -> FloatArray:
    """Return the mean of each group, or the atom at which most of it is."""
    at_atom = np.isin(units, atoms)
    inside = np.add.reduceat(at_atom, start, dtype=np.int64)
    means = np.add.reduceat(np.where(at_atom, 0.0, units), start) / np.maximum(size - inside, 1)
    mostly = np.flatnonzero(2 * inside > size)
    means[mostly] = _middle_atoms(units, at_atom, start[mostly], size[mostly])
    return np.rint(means)


def _middle_atoms(units: FloatArray, at_atom: np.ndarray, start: IntArray, size: IntArray) -> FloatArray:
    """Return the atom of the middle one of a group's ranks at atoms."""
    found = [units[begin : begin + count][at_atom[begin : begin + count]] for begin, count in zip(start, size, strict=True)]
    return np.array([one[len(one) // 2] for one in found])


# Records without a value, each with a reason: a cell for every reason in every stage, after the cells of the values.
#
# The cells of values and of reasons together cover everything that a record can be, so a replaced record still changes two counts
# of a stage by one each, whatever it was and becomes. Later steps read only noisy counts: the number of records with each reason
# is the mean over the stages, and the rest of the records, whose number is public, have values.


def add_labels(edges: IntArray, facts: Facts) -> IntArray:
    """Return the edges of the cells of values, followed by a cell for every reason."""
    return np.append(edges, facts.width + 2 + np.arange(facts.labels)) if facts.labels else edges


def without_labels(stages: Sequence[Stage], facts: Facts) -> tuple[Sequence[Stage], Facts]:
    """Return the counts of values, and how many records seem to have one."""
    if not facts.labels:
        return stages, facts
    cut = slice(None, -facts.labels)
    records = facts.records - int(count_labels(stages, facts).sum())
    own = replace(facts, records=max(records, 1), labels=0)
    return [Stage(stage.edges[cut], stage.counts[cut], stage.noise) for stage in stages], own


def count_labels(stages: Sequence[Stage], facts: Facts) -> IntArray:
    """Return how many records seem to have each reason: the mean over stages, weighted by precision; at least 0, and together at
    most the number of records."""
    if not facts.labels or not stages:
        return np.zeros(facts.labels, dtype=np.int64)
    weights = np.array([stage.noise.spread**-2 for stage in stages])
    counted = np.array([stage.counts[-facts.labels :] for stage in stages], dtype=np.float64)
    counts = np.clip(np.rint(weights @ counted / weights.sum()), 0, facts.records).astype(np.int64)
    beyond = int(counts.sum()) - facts.records
    while beyond > 0:
        most = int(counts.argmax())
        taken = min(beyond, int(counts[most]))
        counts[most] -= taken
        beyond -= taken
    return counts


@dataclass(frozen=True, slots=True)
class WithLabels:
    """The quantile function of values, followed by the records of each reason."""

    values: Quantiles
    labels: IntArray
    width: int

    def of_ranks(self, records: int) -> FloatArray:
        """Return the unit of each of so many ranks: those with a value first, then reason by reason."""
        numbers = records - int(self.labels.sum())
        ranks = np.arange(records)
        reason = np.searchsorted(numbers + np.cumsum(self.labels), ranks, side="right")
        own = self.values.at((ranks + 0.5) / max(numbers, 1))
        return np.where(ranks < numbers, own, self.width + 1.0 + reason)
