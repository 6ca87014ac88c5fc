"""Records without a value, each with a reason: a cell for every reason in every stage, behind the cells of the values.

The cells of values and of reasons together are all that a record can be, so that a replaced record still changes two counts of a
stage by one each, whatever it was and becomes. What comes after reads noisy counts alone: how many records have each reason is
the mean of what the stages say, and the rest of the records, whose number is public, have values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from release_pipeline.privacy.by_value.facts import Facts, Stage
from release_pipeline.privacy.by_value.quantiles import Quantiles
from release_pipeline.privacy.grid import FloatArray, IntArray


def add_labels(edges: IntArray, facts: Facts) -> IntArray:
    """The edges of the cells of values, and behind them a cell for every reason."""
    return np.append(edges, facts.width + 2 + np.arange(facts.labels)) if facts.labels else edges


def without_labels(stages: Sequence[Stage], facts: Facts) -> tuple[Sequence[Stage], Facts]:
    """What was counted of values, and how many records seem to have one."""
    if not facts.labels:
        return stages, facts
    cut = slice(None, -facts.labels)
    records = facts.records - int(count_labels(stages, facts).sum())
    own = replace(facts, records=max(records, 1), labels=0)
    return [Stage(stage.edges[cut], stage.counts[cut], stage.noise) for stage in stages], own


def count_labels(stages: Sequence[Stage], facts: Facts) -> IntArray:
    """How many records seem to have each reason: the mean over stages, each by its precision; no less than none, and together no
    more than there are records."""
    if not facts.labels or not stages:
        return np.zeros(facts.labels, dtype=np.int64)
    weights = np.array([stage.noise.spread**-2 for stage in stages])
    counted = np.array([stage.counts[-facts.labels :] for stage in stages], dtype=np.float64)
    found = np.clip(np.rint(weights @ counted / weights.sum()), 0, facts.records).astype(np.int64)
    beyond = int(found.sum()) - facts.records
    while beyond > 0:
        most = int(found.argmax())
        taken = min(beyond, int(found[most]))
        found[most] -= taken
        beyond -= taken
    return found


@dataclass(frozen=True, slots=True)
class WithLabels:
    """The quantile function of values, and behind the last of them the records of each reason."""

    values: Quantiles
    labels: IntArray
    width: int

    def of_ranks(self, records: int, begin: int, end: int) -> FloatArray:
        """Of ranks begin .. end - 1 of so many: those with a value first, then reason by reason."""
        numbers = records - int(self.labels.sum())
        ranks = np.arange(begin, end)
        reason = np.searchsorted(numbers + np.cumsum(self.labels), ranks, side="right")
        own = self.values.at((ranks + 0.5) / max(numbers, 1))
        return np.where(ranks < numbers, own, self.width + 1.0 + reason)
