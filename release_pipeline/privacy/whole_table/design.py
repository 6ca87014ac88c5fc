"""What is measured of a table, and with how much noise: from declared facts and the number of records alone.

Three parts share the budget: cut points of the columns that are wide, counts of every cell of every column, and a table of
counts for every pair of columns. Shares are constants: the figures hardly depend on them (methods.md section 9). Scales of
Laplace noise are whole numbers, so that a part costs a little less than its share: what is left over goes to the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.by_value.noise_laws import GaussianNoise, LaplaceNoise, Noise
from release_pipeline.privacy.noise import MAX_SCALE, MAX_VARIANCE
from release_pipeline.privacy.whole_table.cuts import OUTER_LEVELS
from release_pipeline.privacy.whole_table.impossible import Impossible, find_edges, find_sides

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
    `nominal`: entries have no order; `atoms`: entries that many records may share, cells of their own; `centre`: 0, or an end.
    By what is declared to be impossible, no cell and no group has entries on both sides of one of `edges`, or of two different
    `sides` where entries have no order."""

    width: int
    nominal: bool = False
    atoms: tuple[int, ...] = ()
    centre: int = 0
    labels: int = 0
    edges: tuple[int, ...] = ()
    sides: tuple[int, ...] = ()

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
    never: tuple[Impossible, ...] = ()
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

    def group_sum_deviation(self, pair: Pair, place: int) -> float:
        """The standard deviation of the noise in the sum of a column over the people of one group of the
        other column of a pair, in standard deviations of the column. Divided by the people it is that
        of their mean.

        The column has G groups of about as many records each, and the squares of their mean scores
        add up to about G: so it is sqrt(G) times the noise of a cell."""
        column, groups = self.columns[place], self.groups
        if not column.is_wide:
            groups = min(max(groups, NARROW_GROUPS), column.width + 1)
        return deviation(self.pairs[pair]) * math.sqrt(groups)

    def groups_at(self, noise: float) -> int:
        """As many as there may be with noise of this standard deviation on a table of two columns."""
        if not self.pairs:
            return MOST_GROUPS
        return min(max(math.floor(math.sqrt(self.records / (_CELL_ERROR * noise))), LEAST_GROUPS), MOST_GROUPS)


def make_design(
    columns: Sequence[Column],
    records: int,
    budget: TableBudget,
    never: Sequence[Impossible] = (),
) -> Design:
    """The design for these columns. `never`: what cannot occur."""
    if not columns:
        raise InvalidArgument("there is no column to measure.", where="columns")
    columns = [_split(column, never, place) for place, column in enumerate(columns)]
    pairs = list(combinations(range(len(columns)), 2))
    wide = [place for place, column in enumerate(columns) if column.is_wide]
    margins = budget.noise_of(budget.amount * (MARGINS if pairs else 1 - (CUTS if wide else 0)) / len(columns))
    cuts: dict[int, tuple[Fraction, int]] = {}
    for place in wide:
        cuts[place] = _choose_depth(budget, budget.amount * CUTS / len(wide), records, margins, columns[place].width)
    design = Design(tuple(columns), records, budget, cuts, margins, never=tuple(never), in_blocks=not budget.by_rho)
    if not pairs:
        return design
    return replace(design, pairs=dict.fromkeys(pairs, budget.noise_of(design.left / len(pairs))))


def _split(column: Column, never: Sequence[Impossible], place: int) -> Column:
    """The column, with where rules about it put an end to cells and groups."""
    if column.nominal:
        return replace(column, sides=find_sides(never, place, column.width))
    return replace(column, edges=find_edges(never, place, column.width))


def deviation(noise: Noise) -> float:
    """The standard deviation of noise: about sqrt(2) t of Laplace's."""
    return math.sqrt(2) * noise.spread if isinstance(noise, LaplaceNoise) else noise.spread


def outweighs(e: Fraction, width: int, records: int, depth: int) -> bool:
    """Whether in nodes of this depth records decide where a cut is, rather than the number of places where it could be."""
    return float(e) * records / 2**depth >= math.log(width + 1) + _OUTWEIGHED


def _choose_depth(budget: TableBudget, share: Fraction, records: int, margins: Noise, width: int) -> tuple[Fraction, int]:
    """The greatest depth at which the cells that come of it hold more records than their cuts are wrong by, and than the noise on
    their counts."""
    found = budget.cut_of(share / (1 + OUTER_LEVELS)), 1
    for depth in range(1, MOST_DEPTH + 1):
        e = budget.cut_of(share / (depth + OUTER_LEVELS))
        needed = 2 ** (depth + 1) * max(_RANK_ERROR / float(e), _MARGIN_ERROR * deviation(margins))
        if records < needed or not outweighs(e, width, records, depth):
            break
        found = e, depth
    return found


def _too_small() -> InvalidArgument:
    return InvalidArgument("the budget is too small for noise of 64 bits.", where="epsilon", remedy="Use a larger one.")
