"""Which columns are counted together, so that the tables of all pairs have little noise.

Under pure epsilon what tables lose adds up: of B tables each has noise of a scale in proportion to B. A table of several columns
has those of all their pairs in it, each count of a pair being the sum of the counts over the other columns: fewer tables do, each
with less noise, and a pair pays with the noise of a sum. Where groups are few the first is worth more (QYL14 do so for columns of
two values). By rho scales grow with the square root of B alone, and hardly anything is gained.

Which blocks these are follows from how many groups every column has, which noisy counts have told, and from what is declared: no
record is looked at. Any choice of blocks would have the same claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.by_value.noise_laws import Noise, name_noise, read_noise
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.whole_table.design import Pair, deviation

Block = tuple[int, ...]  # columns, ascending

MOST_COLUMNS = 6  # of a block
MOST_CELLS = 1 << 15  # of a table that is counted so that others are sums of it
_LIMITS = tuple(2**bits for bits in range(4, 11))  # combinations of groups that a block may have
_WORTH = 0.85  # of the noise of pairs that are counted one by one: pairs of a block share noise, which costs something, too
_TIMES = " x "


@dataclass(frozen=True, slots=True)
class SummedNoise:
    """The noise of counts each of which is the sum of so many, with independent noise of one law."""

    noise: Noise
    terms: int = 1

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return math.sqrt(self.terms) * deviation(self.noise)

    @property
    def name(self) -> str:
        """As it stands beside counts: of one term that of its noise."""
        return name_noise(self.noise) + (f"{_TIMES}{self.terms}" if self.terms > 1 else "")

    @classmethod
    def read(cls, name: str) -> SummedNoise:
        """As it was named."""
        law, times, terms = name.partition(_TIMES)
        if times and not 1 < int(terms) <= max(_LIMITS):
            raise ValueError("no noise of a sum")
        return cls(read_noise(law), int(terms or 1))


def choose_blocks(sizes: Sequence[int], noise_of: Callable[[int], Noise]) -> list[Block]:
    """Blocks that have all pairs of columns of so many groups, the best of some ways to choose them; none where pairs that are
    counted one by one have about as little noise. `noise_of`: that of each of so many tables which share what is left."""
    best: list[Block] = []
    least = _WORTH * deviation(noise_of(math.comb(len(sizes), 2)))
    for most, limit in product(range(3, MOST_COLUMNS + 1), _LIMITS):
        blocks = list(_cover(sizes, most, limit))
        terms = [terms for _, terms in find_homes(blocks, sizes).values()]
        if max(terms) > 1 and (found := deviation(noise_of(len(blocks))) * _mean_root(terms)) < least:
            best, least = blocks, found
    return best


def find_homes(blocks: Sequence[Block], sizes: Sequence[int]) -> dict[Pair, tuple[Block, int]]:
    """For every pair the block whose sums have the fewest counts, and how many these are."""
    homes: dict[Pair, tuple[Block, int]] = {}
    for block in blocks:
        cells = math.prod(sizes[column] for column in block)
        for one, other in combinations(block, 2):
            terms = cells // (sizes[one] * sizes[other])
            if (one, other) not in homes or terms < homes[one, other][1]:
                homes[one, other] = block, terms
    return dict(sorted(homes.items()))


def sum_block(counts: IntArray, block: Block, pair: Pair) -> IntArray:
    """The table of two columns of a block."""
    summed: IntArray = counts.sum(axis=tuple(axis for axis, column in enumerate(block) if column not in pair))
    return summed


def cover_pairs(sizes: Sequence[int], most_cells: int = MOST_CELLS) -> Iterator[Block]:
    """Tables of which all pairs are sums; none where there are but two columns."""
    return _cover(sizes, MOST_COLUMNS, most_cells) if len(sizes) > 2 else iter(())


def _cover(sizes: Sequence[int], most: int, limit: int) -> Iterator[Block]:
    """Blocks of at most so many columns and combinations of groups, until every pair is in one: each begins with the pair that
    has most cells of those that are in none, and takes the column with which most of these come in, of equals the one with fewest
    groups. What still ties goes to columns of which most pairs are missing."""
    groups = np.array(sizes, dtype=np.int64)
    cells = np.outer(groups, groups)
    missing: npt.NDArray[np.bool_] = ~np.eye(len(sizes), dtype=np.bool_)
    while missing.any():
        lacking = missing.sum(axis=0)
        both = np.where(missing, lacking[:, np.newaxis] + lacking, -1)
        first = int(np.lexsort((-both.ravel(), -np.where(missing, cells, 0).ravel()))[0])
        block = list(divmod(first, len(sizes)))
        held = int(groups[block].prod())
        while len(block) < most:
            gains = missing[block].sum(axis=0)
            gains[block] = 0
            gains[held * groups > limit] = 0
            if not gains.any():
                break
            taken = int(np.lexsort((-lacking, groups, -gains))[0])
            block.append(taken)
            held *= int(groups[taken])
        missing[np.ix_(block, block)] = False
        yield tuple(sorted(block))


def _mean_root(terms: Sequence[int]) -> float:
    """The geometric mean of the square roots: pairs of few groups count as much as those of many."""
    return math.exp(sum(map(math.log, terms)) / (2 * len(terms)))
