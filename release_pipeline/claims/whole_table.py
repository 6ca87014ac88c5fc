"""What an attacker sees of a method that counts a whole table, who has all of its noisy counts and knows both tables.

Rows are made of the noisy counts, and tell no more. Given the cells, which are seen, the exact counts of both tables are known in
them, and what is unknown is which of the two was counted; cells themselves depend on the records by noisy cut points.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.trials import derive_secret, read_records, say_nothing
from release_pipeline.policy import Policy
from release_pipeline.policy.families.whole_table import WholeTableFamily, declare_columns, pick_synthetic
from release_pipeline.policy.options import WholeTableOptions
from release_pipeline.privacy.by_value.noise_laws import Noise
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.whole_table import Measured
from release_pipeline.stages.entries import find_entries, spell_entries
from release_pipeline.stages.strategies import BLOCKS, CELLS, PAIRS, find_strategy
from release_pipeline.stages.strategies.whole_table import read_measured

RECORDS = 40  # with few of them one is a large part of every node
DECIMALS = 9
Floats: TypeAlias = npt.NDArray[np.float64]
Shown: TypeAlias = dict[str, npt.NDArray[Any]]
_FAMILY = WholeTableFamily(WholeTableOptions)


@dataclass(frozen=True, slots=True)
class WholePair:
    """Two tables that differ in one person's records. `words`: how."""

    words: str
    one: pa.Table
    other: pa.Table


def make_whole_pairs(policy: Policy) -> list[WholePair]:
    """Neighbours that differ in all columns at once: the one ends of them against the others."""
    declared, people = declare_columns(policy.columns), policy.records_per_person
    last = {name: column.width + column.labels for name, column in declared.items()}
    rest = RECORDS - people
    tables: dict[str, tuple[dict[str, IntArray], dict[str, int], dict[str, int]]] = {}
    even = {name: np.rint(np.linspace(0, column.width, rest)).astype(np.int64) for name, column in declared.items()}
    middle = {name: np.full(rest, column.width // 2, dtype=np.int64) for name, column in declared.items()}
    inside = {name: int(column.is_wide) for name, column in declared.items()}  # ends are cells of their own, whatever is cut
    zeros, ends = inside, {name: column.width - inside[name] for name, column in declared.items()}
    tables["one moves past all of an even spread"] = even, zeros, ends
    tables["one moves from one side of a heap to the other"] = middle, zeros, ends
    beside = {name: min(column.width // 2 + 1, column.width) for name, column in declared.items()}
    tables["one leaves a heap for the entry beside it"] = (
        middle,
        {name: column.width // 2 for name, column in declared.items()},
        beside,
    )
    tables["one loses all values"] = even, zeros, last
    return [
        WholePair(words, _spell(policy, others, first, people), _spell(policy, others, to, people))
        for words, (others, first, to) in tables.items()
    ]


def _spell(policy: Policy, others: Mapping[str, IntArray], first: Mapping[str, int], people: int) -> pa.Table:
    columns: dict[str, Any] = {}
    counted = pick_synthetic(policy.columns)
    for name, entries in others.items():
        columns[name] = spell_entries(counted[name], np.append(np.full(people, first[name]), entries).astype(np.int64))
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class _List:
    """The noisy counts of a column or of a pair, and how far they are from the exact ones of either table."""

    noise: Noise
    one: Floats
    other: Floats

    @property
    def log_ratio(self) -> float:
        """How much likelier these counts are of the other table, in nats."""
        return float(self.noise.log_ratio(self.other, self.one).sum())

    def likeness(self, second: _List) -> float:
        """How much more this list and a second one have the same noise, lane by lane, if both are of the other table."""
        lanes = min(len(self.one), len(second.one))
        mine, its = self.noise.spread, second.noise.spread
        apart = [np.abs(a[:lanes] / mine - b[:lanes] / its) for a, b in ((self.one, second.one), (self.other, second.other))]
        return float((apart[0] - apart[1]).sum())


def show_whole(policy: Policy, pair: WholePair, *, draws: int, purpose: str) -> tuple[Shown, Shown]:
    """What each draw shows, of either table, by the way of looking."""
    first, second = (_show(policy, pair, side, draws=draws, purpose=purpose) for side in range(2))
    return first, second


def _show(policy: Policy, pair: WholePair, side: int, *, draws: int, purpose: str) -> Shown:
    names, strategy = list(declare_columns(policy.columns)), find_strategy(policy)
    design = _FAMILY.declare(policy, pair.one.num_rows)
    exact = [{name: _entries(policy, name, table) for name in names} for table in (pair.one, pair.other)]
    figures: dict[str, Floats] = defaultdict(lambda: np.zeros(draws))
    cells = np.zeros((draws, 1 + len(design.cuts)), dtype=np.int64)
    for draw in range(draws):
        secret = derive_secret(purpose, "noise", side, draw)
        table = pair.other if side else pair.one
        made = strategy.measure(read_records(table), secret=secret, context=(), progress=say_nothing)
        measured = read_measured(names, design, made[CELLS], made.get(BLOCKS, made[PAIRS]))
        lists = dict(_list_all(names, measured, exact))
        for words, found in lists.items():
            figures["likelihood ratio of all counts"][draw] += found.log_ratio
            figures[f"likelihood ratio of {words}"][draw] += found.log_ratio
        for (words, one), (others, other) in combinations(lists.items(), 2):
            figures[f"the same noise in {words} and {others}"][draw] += one.likeness(other)
        for place, name in enumerate(names):
            if design.columns[place].labels:
                # noise that adds up to 0 over the values is no likelier of either table, but their number is told
                valued = len(measured.cells[place].edges) - 1
                figures[f"how many have a value of {name}"][draw] = measured.margins[place][:valued].sum()
        edges = [measured.cells[place].edges for place in design.cuts]
        cells[draw, 0] = zlib.crc32(b"".join(found.tobytes() for found in edges))
        cells[draw, 1:] = [found[len(found) // 2] for found in edges]
    shown: Shown = {words: figure.round(DECIMALS) for words, figure in figures.items()}
    if design.cuts:
        shown["which cells were counted"] = cells[:, 0]
        shown |= {f"where the middle cell of {names[place]} begins": cells[:, 1 + i] for i, place in enumerate(design.cuts)}
    return shown


def _list_all(names: list[str], measured: Measured, exact: list[dict[str, IntArray]]) -> Iterator[tuple[str, _List]]:
    """The counts of every column, and of every pair, or of the columns that were counted together: pairs are sums of these."""
    groups: list[list[IntArray]] = []
    for place, name in enumerate(names):
        cell = [measured.cells[place].find(entries[name]) for entries in exact]
        groups.append([measured.groups[place][found] for found in cell])
        yield name, _compare(measured.design.margins, measured.margins[place], cell)
    for columns, own in measured.tables.items():
        both = [np.ravel_multi_index([groups[column][side] for column in columns], own.counts.shape) for side in range(2)]
        yield " with ".join(names[column] for column in columns), _compare(own.noise, own.counts.ravel(), both)


def _compare(noise: Noise, counts: IntArray, codes: list[IntArray]) -> _List:
    one, other = (counts - np.bincount(found, minlength=len(counts)).astype(np.float64) for found in codes)
    return _List(noise, one, other)


def _entries(policy: Policy, name: str, table: pa.Table) -> IntArray:
    return find_entries(pick_synthetic(policy.columns)[name], table.column(name))
