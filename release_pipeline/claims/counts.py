"""What an attacker sees of a method that counts by value, who has all noisy counts and knows both tables.

Who is in which random part the attacker knows too: that is drawn without the data, and the claim holds however it comes out. So
the exact counts of both tables are known in the cells of each draw, and what is unknown is which of the two was counted.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.claims.trials import Counted, Floats, Ints
from release_pipeline.privacy.by_value import Stage

DECIMALS = 9  # of figures: sums of the same terms in another order are the same figure
Units: TypeAlias = Mapping[str, Ints]  # a table's numbers in grid units, by column


@dataclass(frozen=True, slots=True)
class _List:
    """The noisy counts of one stage, and how far they are from the exact ones of either table."""

    stage: Stage
    one: Floats
    other: Floats

    @classmethod
    def of(cls, stage: Stage, one: Ints, other: Ints) -> _List:
        """For the numbers of both tables."""
        counts = stage.counts.astype(np.float64)
        return cls(stage, counts - _count(one, stage.edges), counts - _count(other, stage.edges))

    @property
    def log_ratio(self) -> float:
        """How much likelier these counts are of the other table, in nats; (|y - c_one| - |y - c_other|) / t, added up, where the
        noise is Laplace's."""
        return float(self.stage.noise.log_ratio(self.other, self.one).sum())

    def likeness(self, second: _List) -> float:
        """How much more this list and a second one have the same noise, lane by lane, if both are of the other table. Lanes in
        which the tables do not differ cancel; noise that is drawn twice shows in the others."""
        lanes = min(len(self.one), len(second.one))
        mine, its = self.stage.noise.spread, second.stage.noise.spread
        apart = [np.abs(a[:lanes] / mine - b[:lanes] / its) for a, b in ((self.one, second.one), (self.other, second.other))]
        return float((apart[0] - apart[1]).sum())


def show_counts(draws: Sequence[Mapping[str, Counted]], one: Units, other: Units) -> dict[str, npt.NDArray[Any]]:
    """What each draw shows of the columns that both tables have here, by the way of looking."""
    figures: dict[str, Floats] = defaultdict(lambda: np.zeros(len(draws)))
    cells = np.zeros((len(draws), 2), dtype=np.int64)
    for draw, counted in enumerate(draws):
        lists = {
            (name, part, number): _List.of(stage, one[name][rows], other[name][rows])
            for name in one
            for part, (stages, rows) in enumerate(zip(counted[name].stages, counted[name].rows, strict=True))
            for number, stage in enumerate(stages, 1)
        }
        for (_, _, number), found in lists.items():
            figures["likelihood ratio of all counts"][draw] += found.log_ratio
            figures[f"likelihood ratio of stage {number}"][draw] += found.log_ratio
        for words, first, second in _pair_lists(lists):
            figures[f"the same noise in {words}"][draw] += first.likeness(second)
        edges = [found.stage.edges for found in lists.values()]
        cells[draw] = zlib.crc32(np.concatenate(edges).tobytes()), sum(map(len, edges))
    rounded = {words: figure.round(DECIMALS) for words, figure in figures.items()}
    return {"which cells were counted": cells[:, 0], "how many cells were counted": cells[:, 1], **rounded}


def _pair_lists(lists: Mapping[tuple[str, int, int], _List]) -> Iterator[tuple[str, _List, _List]]:
    """Lists whose noise must not be the same: of two stages, of two columns, of two parts."""
    for (first, one), (second, other) in combinations(lists.items(), 2):
        differs = [a != b for a, b in zip(first, second, strict=True)]
        if differs == [False, False, True]:
            yield f"stages {first[2]} and {second[2]}", one, other
        elif differs == [True, False, False]:
            yield f"columns {first[0]} and {second[0]}", one, other
        elif differs == [False, True, False]:
            yield "two parts", one, other


def _count(units: Ints, edges: Ints) -> Ints:
    """How many of these numbers are in each cell."""
    return np.bincount(np.searchsorted(edges, units, side="right") - 1, minlength=len(edges) - 1)
