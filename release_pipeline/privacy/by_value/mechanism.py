"""`dp-cdf`: counts by value on public cells, finer where the noisy counts say that it pays, and the quantile function that
explains them (methods.md section 7).

    Replacing one record takes 1 from one count of a stage and adds 1 to another, whatever its values: the noise of a stage
    loses 2/t of epsilon (1/s^2 of rho). Which cells the next stage counts, and whether there is one, are functions of the noisy
    counts so far and of declared facts (`next_stage` is given nothing else but a fit of these, to save it the time); given those,
    it is a stage of fixed cells again. So the whole loses at most the sum over its stages (adaptive composition), which
    `measure` keeps within the budget in exact numbers. What is made of noisy counts afterwards reads no data, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.by_value.cells import cut_cells, find_cells, first_edges
from release_pipeline.privacy.by_value.facts import Facts, Stage
from release_pipeline.privacy.by_value.fit import Masses, fit_masses
from release_pipeline.privacy.by_value.labels import add_labels, without_labels
from release_pipeline.privacy.by_value.noise_laws import Budget, Noise
from release_pipeline.privacy.by_value.tails import cut_noise, cut_tails
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.noise import NoiseStream

EARLY_STEPS, LAST_STEPS = 12, 30
CONCENTRATED = 0.6  # of the records in one cell away from the centre: three stages instead of two
ZOOM = Fraction(2, 5)  # of what is left, for the second of three
PER_NOISE = 0.5  # cells of a stage: 0.5 (n / t)^(2/3) ...
LEAST_CELL = 1.5  # ... each of at least so many noise scales of records ...
MOST_CELLS, MOST_CELLS_OF_MANY, MANY = 110, 150, 50_000  # ... and no more than these
HEAVY = 0.25  # a cell of so much of the mass may be cut finer than its counts allow: where in it records are is not known

Count = Callable[[IntArray], IntArray]


def measure(count: Count, facts: Facts, budget: Budget, stream: NoiseStream) -> list[Stage]:
    """The noisy counts of all stages. `count` gives the exact counts of cells, and is all that sees the data."""
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
    """The cells that are counted next, and their noise; None where nothing is left to count. A function of noisy counts and of
    declared facts: that is what the claim rests on. `first`: what these noisy counts give for the first stage alone, if that was
    fitted before."""
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
    """Where the records are that have a value, by the noisy counts of all stages."""
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
    """What the first of them explains."""
    return fit_masses(stages[:1], facts, before=None, steps=EARLY_STEPS)


def _is_concentrated(masses: Masses, edges: IntArray) -> bool:
    """Whether one cell that is not a single number has most of the records."""
    held = _sum_within(masses.share, masses.edges, edges)
    most = int(held.argmax())
    return bool(held[most] > CONCENTRATED and edges[most + 1] - edges[most] > 1)


def _refine(last: Stage, masses: Masses, facts: Facts, noise: Noise) -> IntArray:
    """The cells of the next stage: each of the last cut in proportion to the sum of (p w^2)^(1/3), the density of the quantiser
    of least error (Panter and Dite), as far as its records are more than noise."""
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
    """The sums over the fine cells in each coarser one."""
    return np.add.reduceat(values, np.searchsorted(fine, edges[:-1]))
