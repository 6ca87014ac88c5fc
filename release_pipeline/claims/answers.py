"""Hostile neighbours for tables next to the rows, and the view of an attacker who has all of their cells and knows both tables.

A record that moves from one cell to another, with the largest possible number and weight, changes most; within a group it changes
two cells of the finest level and none above; within a cell only the sum. Apart from the scale, the likely fault is noise that is
used twice: for two levels, or for two tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.tables import Pair, make_table
from release_pipeline.claims.trials import derive_secret, read_records, say_nothing
from release_pipeline.claims.views import DECIMALS, compare_lists
from release_pipeline.masking.tables import Located, draw_tables, locate_tables
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.by_value.noise_laws import GaussianNoise, LaplaceNoise, Noise
from release_pipeline.mechanisms.tables import CellNoise, sum_units
from release_pipeline.policy import Policy
from release_pipeline.policy.file.tables import Tabulation

OTHERS, MOST_LABELS = 3, 20  # unchanged records of each value; and the largest number of values
MOST_LISTS = 6  # every two of them are compared for shared noise
Cells = Mapping[tuple[str, int], IntArray]  # by table, and level
NO_NOISE = Fraction(1, 10**18)  # a variance


def make_answer_pairs(policy: Policy, names: Sequence[str]) -> list[Pair]:
    """Return pairs of tables that differ in one person's records, for the tables of these names."""
    people = policy.records_per_person
    columns = {column for name in names for column in policy.tables[name].columns}
    most = max(len(column.values) for name, column in policy.counted_columns.items() if name in columns)
    rows = people + OTHERS * min(most, MOST_LABELS)
    ends = {name: _far_end(policy, name) for name in policy.noise_columns}
    staying = np.concatenate([np.full(people, -1), np.arange(rows - people) % most])
    pairs: list[Pair] = []
    for description, before, after, same_end in (  # the labels of each column before and after
        ("one goes from the first labels to the last, with the largest number", 0, -1, True),
        ("one goes to the labels beside", 0, 1, True),
        ("one leaves the last labels for the first, from end to end", -1, 0, False),
        ("one stays where they are, and goes from end to end", 0, 0, False),
    ):
        tables: list[pa.Table] = []
        for label, is_second in ((before, False), (after, True)):
            at_far_end = same_end or not is_second
            units: dict[str, IntArray] = {}
            for name, end in ends.items():
                width = policy.noise_columns[name].exact_grid.width
                units[name] = np.full(rows, 0 if end else width, dtype=np.int64)
                units[name][:people] = end if at_far_end else width - end
            table = make_table(policy, units)
            for name in columns:
                entries = policy.counted_columns[name].examples(0)
                labels = [entries[label] if other < 0 else entries[other % len(entries)] for other in staying]
                table = _put(table, name, pa.array(labels))
            tables.append(_weigh(policy, columns, table, people, heavy=at_far_end))
        pairs.append(Pair(description, tables[0], tables[1], people))
    return [*pairs, *_lose_values(policy, names, pairs[0], people)]


def _put(table: pa.Table, name: str, column: Any) -> pa.Table:
    """Return the table with this column, in the place of any previous one."""
    if name not in table.column_names:
        return table.append_column(name, column)
    return table.set_column(table.column_names.index(name), name, column)


def _lose_values(policy: Policy, names: Sequence[str], pair: Pair, people: int) -> Iterator[Pair]:
    """Yield the pair with a person who leaves the first labels and has no value after that, if the tables count only records with
    a value."""
    valued = {policy.tables[name].sum or policy.tables[name].having for name in names if policy.tabulations[name].lacking}
    second = pair.second
    for name in sorted(name for name in valued if name is not None):
        values = second.column(name).to_pylist()
        second = _put(second, name, pa.array([policy.noise_columns[name].reason_points[0]] * people + values[people:]))
    if valued:
        yield Pair("one goes from the first labels to the last, and has no value there", pair.first, second, people)


def show_answers(
    policy: Policy, names: Sequence[str], pair: Pair, *, draws: int, purpose: str
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, npt.NDArray[Any]]]:
    """Return what so many releases of each of two neighbouring tables show of the tables of these names, keyed by view."""
    policy = policy.model_copy(update={"tables": {name: policy.tables[name] for name in names}})
    tabulations, both = policy.tabulations, (pair.first, pair.second)
    exact = [_count(tabulations, policy, table) for table in both]
    # the positions of the records are the same in every release of a table
    located = [list(locate_tables(policy, read_records(table), progress=say_nothing)) for table in both]
    first, second = (
        _look(tabulations, [_draw(tables, purpose, side, number) for number in range(draws)], *exact)
        for side, tables in enumerate(located)
    )
    return first, second


def _weigh(policy: Policy, by: Collection[str], table: pa.Table, people: int, *, heavy: bool) -> pa.Table:
    """Return the table with the largest weight for the first records, or the least; unchanged records have the least. A masked
    weight is among the numbers, and one that makes cells shows in them."""
    for name, column in policy.columns.items():
        if column.role != "weight" or name not in policy.working_columns or name in policy.noise_columns or name in by:
            continue
        entries = sorted(column.examples(0), key=lambda entry: Fraction(str(entry)))
        least, largest = entries[0], entries[-1]
        weights = [largest if heavy else least] * people + [least] * (table.num_rows - people)
        table = _put(table, name, pa.array(weights))
    return table


def _far_end(policy: Policy, name: str) -> int:
    """Return the end of a domain that is farther from 0, in grid units."""
    grid = policy.noise_columns[name].exact_grid
    return grid.width if abs(grid.hi) >= abs(grid.lo) else 0


def _draw(tables: Sequence[Located], purpose: str, side: int, number: int) -> pa.Table:
    """Return the noisy cells of all tables."""
    return draw_tables(tables, secret=derive_secret(purpose, "tables", side, number), context=())


def _look(
    tabulations: Mapping[str, Tabulation], draws: Sequence[pa.Table], first: Cells, second: Cells
) -> dict[str, npt.NDArray[Any]]:
    figures: dict[str, FloatArray] = defaultdict(lambda: np.zeros(len(draws)))
    values: list[IntArray] = []
    laws = {(name, level): noise for name, table in tabulations.items() for level, noise in enumerate(table.noise)}
    for draw, cells in enumerate(draws):
        noisy = dict(_split(cells, laws, "noisy"))
        lists = {key: compare_lists(_noise_of(law), noisy[key], first[key], second[key]) for key, law in laws.items()}
        for (name, level), noisy_list in lists.items():
            figures["likelihood ratio of all cells"][draw] += noisy_list.log_ratio
            figures[f"likelihood ratio of {name}, level {level}"][draw] += noisy_list.log_ratio
        for (name, level), (other_name, other_level) in combinations(list(laws)[:MOST_LISTS], 2):
            view = f"the same noise in {name}, level {level}, and {other_name}, level {other_level}"
            figures[view][draw] += lists[name, level].likeness(lists[other_name, other_level])
        values.append(np.concatenate([part for _, part in _split(cells, laws, "value")]))
    rounded = {view: figure.round(DECIMALS) for view, figure in figures.items()}
    return {**rounded, "values that add up": np.array(values), "their sum": np.array([part.sum() for part in values])}


def _split(cells: pa.Table, keys: Iterable[tuple[str, int]], column: str) -> Iterator[tuple[tuple[str, int], IntArray]]:
    """Yield the numbers of each table and level."""
    names, levels = np.array(cells.column("table_name").to_pylist()), cells.column("level").to_numpy()
    numbers = cells.column(column).to_numpy().astype(np.int64)
    for name, level in keys:
        yield (name, level), numbers[(names == name) & (levels == level)]


def _noise_of(law: CellNoise) -> Noise:
    """Return the noise of cells; for cells without noise, so little that any difference shows."""
    if law.law == "Laplace" and law.amount:
        return LaplaceNoise(int(law.amount))
    return GaussianNoise(law.amount or NO_NOISE)


def _count(tabulations: Mapping[str, Tabulation], policy: Policy, table: pa.Table) -> dict[tuple[str, int], IntArray]:
    """Return the exact cells, counted record by record without using the code under attack."""
    exact: dict[tuple[str, int], IntArray] = {}
    for name, tabulation in tabulations.items():
        amounts = [1] * table.num_rows
        if tabulation.table.sum is not None:
            grid = policy.noise_columns[tabulation.table.sum].exact_grid
            units = grid.quantise(table.column(tabulation.table.sum).to_numpy())
            amounts = [int(unit) + sum_units(grid) for unit in units]
        valued = tabulation.table.sum or tabulation.table.having
        if valued is not None and tabulation.lacking:
            lacks = policy.noise_columns[valued].find_reasons(table.column(valued).to_numpy()) >= 0
            amounts = [0 if lacking else amount for lacking, amount in zip(lacks.tolist(), amounts, strict=True)]
        if tabulation.weights is not None:
            weights = table.column(tabulation.weights.column).to_pylist()
            amounts = [
                amount * round(Fraction(str(weight)) / tabulation.weights.step)
                for amount, weight in zip(amounts, weights, strict=True)
            ]
        entries = {axis.column: [str(entry) for entry in table.column(axis.column).to_pylist()] for axis in tabulation.axes}
        for level in range(len(tabulation.levels)):
            cell_of_labels = {labels: cell for cell, labels in enumerate(tabulation.list_cells(level))}
            cells = np.zeros(len(cell_of_labels), dtype=np.int64)
            for row, amount in enumerate(amounts):
                labels = tuple(
                    axis.labels[at][axis.places[at][axis.values.index(entries[axis.column][row])]]
                    for axis in tabulation.axes
                    for at in (level if axis.is_deep else 0,)
                )
                cells[cell_of_labels[labels]] += amount
            exact[name, level] = cells
    return exact
