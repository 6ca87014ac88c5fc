"""What is measured of a table, and with how much noise: from declared facts and the number of records only.

Three parts share the budget: cut points of the columns that are wide, counts of every cell of every column, and a table of
counts for every pair of columns. Shares are constants: the figures hardly depend on them (methods.md section 9). Scales of
Laplace noise are whole numbers, so that a part costs a little less than its share: what is left over goes to the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.by_value.noise_laws import GaussianNoise, LaplaceNoise, Noise, name_noise, read_noise
from release_pipeline.mechanisms.noise import MAX_SCALE, MAX_VARIANCE
from release_pipeline.mechanisms.whole_table.cuts import OUTER_LEVELS

NARROW = 64  # grid steps: a domain that is no wider has a cell for each number
CUTS, MARGINS = Fraction(12, 100), Fraction(28, 100)  # of the budget; pairs have the rest
MOST_DEPTH = 5
LEAST_GROUPS, MOST_GROUPS = 3, 12  # of a column, in the tables of its pairs
NARROW_GROUPS = 6  # at the least of a column that has a cell for each number: its entries are like categories
_RANK_ERROR = 6.0  # a cut misses its rank by about so many records, over e
_MARGIN_ERROR = 3.0  # standard deviations of a count that a cell must hold
_OUTWEIGHED = 3.0  # e-foldings over the number of places of a cut
_CELL_ERROR = 8.0  # standard deviations that a cell of a pair must hold
_ROOT_BITS = 60

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Column:
    """The entries of a column are 0..width, and behind them a reason each for which a record has none: `labels` of these.
    `nominal`: entries have no order; `atoms`: entries that many records may share, cells of their own; `centre`: 0, or an end."""

    width: int
    nominal: bool = False
    atoms: tuple[int, ...] = ()
    centre: int = 0
    labels: int = 0

    @property
    def is_wide(self) -> bool:
        """Whether cut points are measured, for there are too many entries to count each."""
        return not self.nominal and self.width > NARROW

    @property
    def own_cells(self) -> tuple[int, ...]:
        """The atoms of a wide column, its ends and its centre among them: values that are clamped pile up at the ends."""
        return tuple(sorted({0, self.width, self.centre, *self.atoms}))


@dataclass(frozen=True, slots=True)
class TableBudget:
    """What a whole table may lose: epsilon, or rho."""

    amount: Fraction
    by_rho: bool = False

    def noise_of(self, share: Fraction) -> Noise:
        """The noise of the counts of disjoint cells that may lose so much."""
        if self.by_rho:
            variance = 1 / share
            if variance > MAX_VARIANCE:
                raise _too_small()
            return GaussianNoise(variance)
        scale = max(math.ceil(2 / share), 1)
        if scale > MAX_SCALE:
            raise _too_small()
        return LaplaceNoise(scale)

    def cut_of(self, share: Fraction) -> Fraction:
        """e of a level of cuts that may lose so much: 2e, or e^2/2, rounded down.

        >>> float(TableBudget(Fraction(1), by_rho=True).cut_of(Fraction(2, 100)))
        0.2
        """
        if not self.by_rho:
            return share / 2
        return Fraction(math.isqrt(math.floor(2 * share * (1 << 2 * _ROOT_BITS))), 1 << _ROOT_BITS)

    def loss_of_cuts(self, e: Fraction) -> Fraction:
        """What a level with this e loses."""
        return e * e / 2 if self.by_rho else 2 * e


@dataclass(frozen=True, slots=True)
class Design:
    """The three parts, for a table of so many records. `pairs`: the noise on each of these tables if they are counted one by one.
    `in_blocks`: columns are counted together where that leaves less of it (`blocks`)."""

    columns: tuple[Column, ...]
    records: int
    budget: TableBudget
    cuts: Mapping[int, tuple[Fraction, int]]  # of each wide column: e of a level, and the depth
    margins: Noise
    pairs: Mapping[Pair, Noise] = field(default_factory=dict[Pair, Noise])
    in_blocks: bool = False

    @property
    def loss(self) -> Fraction:
        """What all of it loses at the most: never more than the budget, which blocks may use to the end, since scales are whole
        numbers."""
        one_by_one = self.loss_of_columns + sum((noise.loss for noise in self.pairs.values()), Fraction(0))
        return self.budget.amount if self.in_blocks and self.pairs else one_by_one

    @property
    def left(self) -> Fraction:
        """What is left for the tables of several columns."""
        return self.budget.amount - self.loss_of_columns

    def noise_of_each(self, tables: int) -> Noise:
        """The noise of each of so many tables that share what is left."""
        return self.budget.noise_of(self.left / tables)

    @property
    def loss_of_columns(self) -> Fraction:
        """What cuts and counts of columns lose: the rest of the budget is for the pairs."""
        levels = sum((self.budget.loss_of_cuts(e) * (depth + OUTER_LEVELS) for e, depth in self.cuts.values()), Fraction(0))
        return levels + self.margins.loss * len(self.columns)

    @property
    def pair_deviation(self) -> float:
        """The standard deviation of the noise in the table of a pair that weighs no more than others."""
        return max((deviation(noise) for noise in self.pairs.values()), default=0.0)

    @property
    def groups(self) -> int:
        """Into how many groups a column with an order is put for the tables of pairs that are counted one by one, at the most."""
        return self.groups_at(self.pair_deviation)

    def group_sum_deviation(self, pair: Pair, index: int) -> float:
        """The standard deviation of the noise in the sum of a column over the people of one group of the
        other column of a pair, in standard deviations of the column. Divided by the people it is that
        of their mean.

        The column has G groups of about as many records each, and the squares of their mean scores
        add up to about G: so it is sqrt(G) times the noise of a cell."""
        column, groups = self.columns[index], self.groups
        if not column.is_wide:
            groups = min(max(groups, NARROW_GROUPS), column.width + 1)
        return deviation(self.pairs[pair]) * math.sqrt(groups)

    def groups_at(self, noise: float) -> int:
        """As many as there may be with noise of this standard deviation on a table of two columns."""
        if not self.pairs:
            return MOST_GROUPS
        return min(max(math.floor(math.sqrt(self.records / (_CELL_ERROR * noise))), LEAST_GROUPS), MOST_GROUPS)


def make_design(columns: Sequence[Column], records: int, budget: TableBudget) -> Design:
    """The design for these columns."""
    if not columns:
        raise InvalidArgument("there is no column to measure.", where="columns")
    pairs = list(combinations(range(len(columns)), 2))
    wide = [index for index, column in enumerate(columns) if column.is_wide]
    margins = budget.noise_of(budget.amount * (MARGINS if pairs else 1 - (CUTS if wide else 0)) / len(columns))
    cuts: dict[int, tuple[Fraction, int]] = {}
    for index in wide:
        cuts[index] = _choose_depth(budget, budget.amount * CUTS / len(wide), records, margins, columns[index].width)
    design = Design(tuple(columns), records, budget, cuts, margins, in_blocks=not budget.by_rho)
    if not pairs:
        return design
    return replace(design, pairs=dict.fromkeys(pairs, budget.noise_of(design.left / len(pairs))))


def deviation(noise: Noise) -> float:
    """The standard deviation of noise: about sqrt(2) t of Laplace's."""
    return math.sqrt(2) * noise.spread if isinstance(noise, LaplaceNoise) else noise.spread


def outweighs(e: Fraction, width: int, records: int, depth: int) -> bool:
    """Whether in nodes of this depth records decide where a cut is, rather than the number of places where it could be."""
    return float(e) * records / 2**depth >= math.log(width + 1) + _OUTWEIGHED


def _choose_depth(budget: TableBudget, share: Fraction, records: int, margins: Noise, width: int) -> tuple[Fraction, int]:
    """The greatest depth at which the cells that come of it hold more records than their cuts are wrong by, and than the noise on
    their counts."""
    chosen = budget.cut_of(share / (1 + OUTER_LEVELS)), 1
    for depth in range(1, MOST_DEPTH + 1):
        e = budget.cut_of(share / (depth + OUTER_LEVELS))
        needed = 2 ** (depth + 1) * max(_RANK_ERROR / float(e), _MARGIN_ERROR * deviation(margins))
        if records < needed or not outweighs(e, width, records, depth):
            break
        chosen = e, depth
    return chosen


def _too_small() -> InvalidArgument:
    return InvalidArgument("the budget is too small for noise of 64 bits.", where="epsilon", remedy="Use a larger one.")


# Which columns are counted together, so that the tables of all pairs have little noise.
#
# Under pure epsilon what tables lose adds up: of B tables each has noise of a scale in proportion
# to B. A table of several columns has those of all their pairs in it, each count of a pair being
# the sum of the counts over the other columns: fewer tables do, each with less noise, and a pair
# pays with the noise of a sum. Where groups are few the first is worth more (QYL14 do so for
# columns of two values). By rho scales grow with the square root of B only, and hardly anything is
# gained.
#
# Which blocks these are follows from how many groups every column has, which noisy counts have
# shown, and from what is declared: no record is looked at. Any choice of blocks would have the same
# claim.


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
        """Its name next to counts: of one term that of its noise."""
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


# Whether there are enough records, and enough of a budget, for rows that are worth reading: by
# public facts only.
#
# Two things must hold. A cut of a wide column is likelier to be near its rank than anywhere else:
# the exponent over a node of the deepest level outweighs the number of places where it could be.
# And the noise of a cell of a pair's table is small compared with what a cell holds on average when each
# column has but a few groups.


_CELLS = 32  # of a pair's table, each of which still differs from noise
_LARGEST = 1 << 60
Make = Callable[[int, TableBudget], Design]  # the design for so many records, and a budget


def is_enough(design: Design) -> bool:
    """Whether rows of this design are worth reading."""
    cuts = design.cuts.items()
    if not all(outweighs(e, design.columns[place].width, design.records, depth) for place, (e, depth) in cuts):
        return False
    return design.pair_deviation <= design.records / _CELLS


def find_enough_records(make: Make, budget: TableBudget) -> int | None:
    """About how many records would do with this budget, rounded up to two digits; None where no number does."""
    found = _search(lambda records: _does(make, records, budget), 1)
    return None if found is None else _round_up(found)


def find_enough_budget(make: Make, records: int, budget: TableBudget) -> Fraction | None:
    """About the least amount that would do for so many records; None where none does."""
    thousandth = Fraction(1, 1000)
    found = _search(lambda parts: _does(make, records, TableBudget(parts * thousandth, budget.by_rho)), 1)
    return None if found is None else _round_up(found) * thousandth


def _does(make: Make, records: int, budget: TableBudget) -> bool:
    try:
        return is_enough(make(records, budget))
    except ReleasePipelineError:  # the budget is too small for any noise
        return False


def _search(does: Callable[[int], bool], first: int) -> int | None:
    """The least number that does, where every larger one does too."""
    high = first
    while not does(high):
        high *= 2
        if high > _LARGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if does(middle) else (middle, high)
    return high


def _round_up(number: int) -> int:
    digits = max(len(str(number)) - 2, 0)
    return -(-number // 10**digits) * 10**digits
