"""What a whole table loses, by trying everything: all small tables, all neighbours, all cuts of all levels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.noise import exp_digits
from release_pipeline.mechanisms.whole_table import Cells, Column, TableBudget, design, make_design
from release_pipeline.mechanisms.whole_table.cuts import BITS, CutLaw, Node, Places, find_best
from release_pipeline.mechanisms.whole_table.design import Block, choose_blocks
from tests.counting import count_together

Table = tuple[int, ...]
Law = dict[tuple[Node, ...], Fraction]


@cache
def exponential(exponent: Fraction) -> Fraction:
    """exp(-exponent), to 200 bits."""
    return Fraction(exp_digits(exponent.numerator, exponent.denominator, 200) if exponent else 1 << 200, 1 << 200)


def law_of_cut(table: Table, node: Node, law: CutLaw) -> dict[int, Fraction]:
    """The probability of every cut of a node, as the module's words say it."""
    a, b = node
    inside = [value for value in table if a <= value < b]
    weights = {
        cut: (law.places.up_to(cut) - law.places.up_to(cut - 1))
        * exponential(law.e / 2 * abs(2 * sum(value < cut for value in inside) - len(inside)))
        for cut in range(a + 1, b)
    }
    total = sum(weights.values(), Fraction(0))
    return {cut: weight / total for cut, weight in weights.items()}


def law_of_levels(table: Table, width: int, depth: int, law: CutLaw, public: Table = ()) -> Law:
    """The probability of every row of nodes after so many levels, each of which depends on those before. `public`: edges that are
    declared."""
    found: Law = {tuple(itertools.pairwise((0, *public, width + 1))): Fraction(1)}
    for _ in range(depth):
        after: Law = {}
        for nodes, chance in found.items():
            ways: list[list[tuple[tuple[Node, ...], Fraction]]] = []
            for a, b in nodes:
                if b - a == 1:
                    ways.append([(((a, b),), Fraction(1))])
                else:
                    ways.append([(((a, cut), (cut, b)), part) for cut, part in law_of_cut(table, (a, b), law).items()])
            for choice in itertools.product(*ways):
                key = tuple(node for halves, _ in choice for node in halves)
                after[key] = after.get(key, Fraction(0)) + chance * math.prod((part for _, part in choice), start=Fraction(1))
        found = after
    return found


def neighbours(table: Table, width: int) -> Iterator[Table]:
    """Every table with one record replaced."""
    for place, value in itertools.product(range(len(table)), range(width + 1)):
        yield tuple(sorted((*table[:place], value, *table[place + 1 :])))


def worst_ratio(width: int, records: int, depth: int, law: CutLaw, public: Table = ()) -> float:
    """The largest log ratio of any outcome over all tables and neighbours."""
    tables = itertools.combinations_with_replacement(range(width + 1), records)
    laws = {table: law_of_levels(table, width, depth, law, public) for table in tables}
    return max(
        math.log(max(laws[table][nodes] / laws[other][nodes] for nodes in laws[table]))
        for table in laws
        for other in set(neighbours(table, width))
    )


@pytest.mark.parametrize(
    ("width", "records", "depth", "e", "centre"),
    [(4, 4, 2, Fraction(1, 2), 0), (5, 3, 2, Fraction(1), 2), (3, 5, 2, Fraction(3, 10), 0), (6, 3, 1, Fraction(2), 5)],
)
def test_levels_of_cuts_lose_at_most_what_they_claim(width: int, records: int, depth: int, e: Fraction, centre: int) -> None:
    """2e each, adaptively: cuts of a level depend on those of the level before."""
    assert 0 < worst_ratio(width, records, depth, CutLaw(Places(width, centre), e)) <= 2 * e * depth


@pytest.mark.parametrize(("public", "depth"), [((3,), 2), ((2, 4), 1)])
def test_levels_of_several_nodes_lose_no_more(public: Table, depth: int) -> None:
    """A record that goes from one node to another moves both by one."""
    law = CutLaw(Places(6, 0), Fraction(1))
    assert 0 < worst_ratio(6, 3, depth, law, public) <= 2 * law.e * depth


@pytest.mark.parametrize("e", [Fraction(1, 50), Fraction(1, 3), Fraction(9)])
def test_no_cut_of_a_block_is_likelier_than_its_bound(e: Fraction) -> None:
    """And blocks have all cuts of the node, each once. A cut above its bound would be drawn too seldom."""
    random = np.random.default_rng(5)
    for number in range(150):
        width = int(random.integers(2, 40))
        a = int(random.integers(0, width - 1))
        b = int(random.integers(a + 2, width + 2))
        count = int(random.integers(0, 30)) if number % 3 else 1000
        values = np.sort(random.integers(a, b, count) if number % 2 else np.minimum(random.integers(a, 2 * b, count), b - 1))
        law = CutLaw(Places(width, int(random.integers(0, width + 1))), e)
        away = {cut: abs(2 * int((values < cut).sum()) - count) for cut in range(a + 1, b)}
        tally = Tally.of(values)
        assert find_best(tally, (a, b)) == min(away.values())
        seen: list[int] = []
        edges, masses, bounds = law.blocks(tally, (a, b), min(away.values()))
        for (low, high), mass, bound in zip(itertools.pairwise(edges), masses, bounds, strict=True):
            cuts = range(low + 1, high + 1)
            seen.extend(cuts)
            assert mass == sum(law.places.up_to(cut) - law.places.up_to(cut - 1) for cut in cuts)
            most = max(exponential(e / 2 * (away[cut] - min(away.values()))) for cut in cuts)
            assert most * (1 << BITS) <= bound <= 1 << BITS
        assert seen == list(range(a + 1, b))


@pytest.mark.parametrize("alpha", [Fraction(11, 10), Fraction(2), Fraction(8), Fraction(40)])
def test_levels_of_cuts_lose_at_most_what_they_claim_in_rho(alpha: Fraction) -> None:
    """e^2/2 each: the Renyi divergence of every order, over all tables, neighbours and outcomes; near to it for one level."""
    law, depth = CutLaw(Places(4, 1), Fraction(1, 2)), 2
    laws = {table: law_of_levels(table, 4, depth, law) for table in itertools.combinations_with_replacement(range(5), 4)}
    worst = max(renyi(laws[table], laws[other], float(alpha)) for table in laws for other in set(neighbours(table, 4)))
    claimed = float(law.e) ** 2 / 2 * depth
    assert 0.15 * min(float(alpha), 8) * claimed < worst <= float(alpha) * claimed


def renyi(one: Law, other: Law, alpha: float) -> float:
    """The divergence of one law from the other."""
    logs = [alpha * math.log(one[key]) + (1 - alpha) * math.log(other[key]) for key in one]
    return math.log(sum(math.exp(term - max(logs)) for term in logs)) / (alpha - 1) + max(logs) / (alpha - 1)


WIDE, VALUES = 3, 2  # the last number of the one column, and the values of the other


@pytest.mark.parametrize(("labels", "wide"), [(0, WIDE), (1, WIDE), (0, WIDE + 1)])
def test_a_whole_table_loses_at_most_what_its_design_says(labels: int, wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables of two records in two columns, all records that one may become, all cuts, and all groups that noisy counts could
    ask for: what a level of cuts, counts of cells and counts of pairs lose together, outcome by outcome."""
    monkeypatch.setattr(design, "NARROW", 2)
    columns = (Column(wide, labels=labels), Column(VALUES - 1, nominal=True))
    made = make_design(columns, 2, TableBudget(Fraction(6)))
    columns = made.columns
    [(e, _)] = made.cuts.values()
    law, entries = CutLaw(Places(wide, 0), e), range(wide + 1 + labels)
    records = list(itertools.product(entries, range(VALUES)))
    assert made.loss <= 6
    worst = 0.0
    for first, second, replaced in itertools.product(records, repeat=3):
        tables = [np.array([one, second], dtype=np.int64) for one in (first, replaced)]
        values = [tuple(sorted(t[:, 0][t[:, 0] <= wide].tolist())) for t in tables]
        laws = [law_of_levels(own, wide, 1, law) for own in values]
        for nodes, chance in laws[0].items():
            edges = np.array(sorted({0, wide + 1}.union(*nodes)), dtype=np.int64)
            cells = Cells(columns[0], edges), Cells.narrow(columns[1])
            loss = math.log(chance / laws[1][nodes])
            found = [[cells[place].find(table[:, place]) for place in range(2)] for table in tables]
            for place in range(2):
                loss += changed(found[0][place], found[1][place], cells[place].count) * made.margins.loss / 2
            pairs = [
                changed(*(group[part[0]] * VALUES + part[1] for part in found), 40)
                for group in map(np.array, groupings(cells[0].count))
            ]
            worst = max(worst, loss + max(pairs) * float(made.pairs[0, 1].loss) / 2)
    of_counts = float(2 * made.margins.loss + made.pairs[0, 1].loss)
    assert of_counts + float(e) < worst <= of_counts + 2 * float(e)


@pytest.mark.parametrize("values", [(2, 2, 2), (3, 2, 2, 2), (2, 2, 2, 2, 2, 2, 2)])
def test_blocks_lose_at_most_what_is_left_for_pairs(values: tuple[int, ...]) -> None:
    """Whatever groups noisy counts ask for, and so whatever blocks there are: of all records that may become another, the counts
    of all blocks together lose no more than what is left; and some lose just what their scale says."""
    columns = [Column(count - 1, nominal=True) for count in values]
    made = make_design(columns, 2, TableBudget(Fraction(1, 10)))
    left = made.left
    seen: set[tuple[Block, ...]] = set()
    for groups in itertools.product(*map(partitions_of, values)):
        sizes = [max(own) + 1 for own in groups]
        blocks = choose_blocks(sizes, made.noise_of_each) or list(itertools.combinations(range(len(sizes)), 2))
        seen.add(tuple(blocks))
        noise = made.noise_of_each(len(blocks))
        records = list(itertools.product(*(dict.fromkeys(own) for own in groups)))  # as their groups
        worst = max(
            sum((of_block(one, other, block, sizes) * noise.loss / 2 for block in blocks), Fraction(0))
            for one, other in itertools.product(records[: 1 if len(values) > 4 else None], records)
        )
        assert worst <= left
        assert min(sizes) == 1 or worst == len(blocks) * noise.loss
    assert min(len(blocks) for blocks in seen) == (1 if len(values) < 5 else 3)


def of_block(one: Table, other: Table, block: Block, sizes: list[int]) -> int:
    """What the counts of a block change by when one record becomes another."""
    shape = [sizes[column] for column in block]
    tables = [count_together([np.array([record[column]], dtype=np.uint16) for column in block], shape) for record in (one, other)]
    return int(np.abs(tables[0] - tables[1]).sum())


def partitions_of(values: int) -> list[Table]:
    """All ways to put values together, as numbers of groups."""
    return [
        groups
        for groups in itertools.product(range(values), repeat=values)
        if list(dict.fromkeys(groups)) == list(range(max(groups) + 1))
    ]


def changed(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64], cells: int) -> int:
    """The sum of what all counts change by."""
    return int(np.abs(np.bincount(one, minlength=cells) - np.bincount(other, minlength=cells)).sum())


@cache
def groupings(cells: int) -> tuple[tuple[int, ...], ...]:
    """All ways to put neighbouring cells together."""
    return tuple(tuple(itertools.accumulate((0, *joins))) for joins in itertools.product((0, 1), repeat=cells - 1))
