"""How far synthetic tables of one, two and three columns are from the original ones: total variation distances, beside those of
as many original records drawn anew with replacement, which is what chance alone would do to the very table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, drawn_positions, shuffled_positions
from release_pipeline.privacy.whole_table.measure import count_together

GROUPS = 12  # of a column of numbers, of about as many original records each; so many values of others, the rare ones together
MOST_TRIPLES = 100  # drawn at random, where there are more
WORST = 5  # pairs that are named

Read: TypeAlias = Callable[[str], tuple[IntArray, IntArray]]
Numbers: TypeAlias = npt.NDArray[np.uint8]
Places: TypeAlias = npt.NDArray[np.intp]


def measure_structure(names: Sequence[str], read: Read, nominal: Sequence[str], stream: NoiseStream) -> dict[str, Any]:
    """Of every column, every pair, and some sets of three: the mean distance, and that of records drawn anew; of pairs also the
    worst. `read`: the entries of a column before and after. Of each record a byte for each column is kept, and as much of what is
    drawn."""
    tables = _Tables.of(names, read, nominal, stream)
    triples = list(combinations(names, 3))
    drawn: list[int] = np.sort(shuffled_positions(len(triples), stream)[:MOST_TRIPLES]).tolist() if triples else []
    columns = {(name,): tables.compare((name,)) for name in names}
    pairs = {pair: tables.compare(pair) for pair in combinations(names, 2)}
    chosen = [tables.compare(triples[place]) for place in drawn]
    worst = sorted(pairs, key=lambda pair: -pairs[pair][0])[:WORST]
    return {
        "columns": {name: distance for (name,), (distance, _) in columns.items()},
        "columns_by_chance": _mean([by_chance for _, by_chance in columns.values()]),
        "pairs": _mean([distance for distance, _ in pairs.values()]),
        "pairs_by_chance": _mean([by_chance for _, by_chance in pairs.values()]),
        "worst_pairs": [{"one": one, "other": other, "distance": pairs[one, other][0]} for one, other in worst],
        "triples": _mean([distance for distance, _ in chosen]),
        "triples_by_chance": _mean([by_chance for _, by_chance in chosen]),
        "triples_tried": len(chosen),
    }


def _mean(distances: Sequence[float]) -> float | None:
    return float(np.mean(distances)) if distances else None


@dataclass(frozen=True, slots=True)
class _Tables:
    """The group of each record in every column: before, after, and drawn anew."""

    groups: dict[str, tuple[Numbers, Numbers, Numbers]]

    @classmethod
    def of(cls, names: Sequence[str], read: Read, nominal: Sequence[str], stream: NoiseStream) -> _Tables:
        """Of columns that are read one after the other."""
        groups: dict[str, tuple[Numbers, Numbers, Numbers]] = {}
        anew: Places | None = None
        for name in names:
            before, after = read(name)
            anew = drawn_positions(len(before), stream) if anew is None else anew
            find_group = _find_groups(before, is_nominal=name in nominal)
            was, now = find_group(before), find_group(after)
            groups[name] = was, now, was[anew]
        return cls(groups)

    def compare(self, names: Sequence[str]) -> tuple[float, float]:
        """Half the sum of the differences of the shares of all cells, of synthetic records and of those drawn anew."""
        was, now, anew = (self._share(names, side) for side in range(3))
        return float(np.abs(was - now).sum() / 2), float(np.abs(was - anew).sum() / 2)

    def _share(self, names: Sequence[str], side: int) -> npt.NDArray[np.float64]:
        columns = [self.groups[name][side] for name in names]
        return count_together(columns, [GROUPS] * len(columns)) / len(columns[0])


def _find_groups(before: IntArray, *, is_nominal: bool) -> Callable[[IntArray], Numbers]:
    """What says the group of entries: by the ranks of originals, or the commonest entries alone and the others together."""
    ordered = np.sort(before)
    entries, counts = np.unique(ordered, return_counts=True)
    if not is_nominal and len(entries) > GROUPS:
        return partial(_find_interval, np.unique(ordered[len(ordered) * np.arange(1, GROUPS) // GROUPS]))
    return partial(_find_common, np.sort(entries[np.argsort(-counts, kind="stable")[: GROUPS - 1]]))


def _find_interval(cuts: IntArray, entries: IntArray) -> Numbers:
    return np.searchsorted(cuts, entries, side="right").astype(np.uint8)


def _find_common(common: IntArray, entries: IntArray) -> Numbers:
    """The place among the common entries, or behind them."""
    place = np.searchsorted(common, entries).clip(max=len(common) - 1)
    return np.where(common[place] == entries, place, len(common)).astype(np.uint8)
