"""One column, end to end: what is declared of it, what is counted, and what each group of ranks is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from release_pipeline.privacy.by_value.facts import Facts, Stage
from release_pipeline.privacy.by_value.labels import WithLabels, count_labels
from release_pipeline.privacy.by_value.mechanism import Count, estimate, measure
from release_pipeline.privacy.by_value.noise_laws import Budget
from release_pipeline.privacy.by_value.quantiles import Quantiles, release_values
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.noise import NoiseStream
from release_pipeline.privacy.tally import Tally


@dataclass(frozen=True, slots=True)
class ByValue:
    """What is declared of a column: nothing here is of the data. `k` ranks are given one value; `centre` and `atoms` are in grid
    units; `labels` as in `Facts`."""

    grid: Grid
    budget: Budget
    k: int = 1
    centre: int = 0
    atoms: tuple[int, ...] = ()
    labels: int = 0

    @property
    def coded(self) -> Grid:
        """The grid, and behind its upper end a point for each reason why a record has no value."""
        return replace(self.grid, width=self.grid.width + self.labels)

    def facts(self, records: int) -> Facts:
        """What is public before anything is counted."""
        return Facts(self.grid.width, records, self.centre, self.atoms, self.labels)

    def measure(self, count: Count, records: int, stream: NoiseStream) -> list[Stage]:
        """The noisy counts of a column of so many records, whose exact ones `count` gives: all that is ever learned of it."""
        return measure(count, self.facts(records), self.budget, stream)

    def release(self, stages: Sequence[Stage], records: int) -> Tally:
        """What ranks are given, k by k: made of noisy counts and declared facts alone."""
        facts = self.facts(records)
        values = Quantiles.of(estimate(stages, facts))
        quantiles = WithLabels(values, count_labels(stages, facts), facts.width) if self.labels else values
        atoms = (*self.atoms, *range(facts.width + 1, facts.width + 1 + self.labels))
        released = release_values(quantiles, records, self.k, atoms)
        return Tally(self.coded.values_of(released.entries), released.ends)


def usual_centre(grid: Grid) -> int:
    """Where cells are finest if nothing else is declared: at 0, or at the end of the domain that is next to it.

    >>> [usual_centre(Grid.declare(domain, 1)) for domain in ((0, 9), (-5, 5), (3, 9), (-9, -4))]
    [0, 5, 0, 5]
    """
    return int(grid.quantise(np.array([0.0]))[0])
