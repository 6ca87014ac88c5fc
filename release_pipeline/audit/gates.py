"""Groups of records that share their released quasi-identifiers: how small they are and what they reveal. And the limits that a
policy sets, on these groups and on expected errors.

A prosecutor knows that a person is in the release, a journalist only that the person is in the population that it was drawn
from (EED08).

Sizes and l-diversity are computed from the released table only, so that a gate may limit them. The journalist's risk uses the
records that the release was made from, and is internal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.mechanisms.risk.risk import distinct_diversity, number_entries
from release_pipeline.policy import Policy
from release_pipeline.policy.file.sections import Gates
from release_pipeline.rows.columns import BLANK, AnyTable, Codes, cut_table, encode_entries, number_cells
from release_pipeline.rows.suppress import combine_cells, spell_rows

MOST_BARS = 40


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one released table. `bars`: the number of groups in each range of sizes. `diversity`: for every kept
    confidential column, the fewest different values in a group, or block. `prosecutor`: the chance of finding a person of the
    smallest group, for somebody who knows that the person is in the table."""

    number: int
    smallest: int
    mean: float
    largest: int
    bars: tuple[tuple[int, int, int], ...]
    diversity: dict[str, int]
    prosecutor: float


def measure_groups(table: AnyTable, policy: Policy, blocks: Codes | None = None) -> Groups | None:
    """Return the groups of a released table; None if no released quasi-identifier makes any, or no record is left. `blocks`: for
    swapped values, the block of each row: disclosure is then measured in these, which are parts of the groups."""
    names = policy.released_quasi
    if not names or table.num_rows == 0:
        return None
    secrets = [
        name
        for name, column in policy.released_columns.items()
        if column.role == "confidential" and name not in policy.noise_columns
    ]
    if secrets:
        group = group_by(_number(table, name) for name in names)
        sizes = np.bincount(group)
        group = group if blocks is None else blocks
        diversity = {name: distinct_diversity(group, _number(table, name)) for name in secrets}
    else:
        sizes, diversity = _count_rows(table, names), dict[str, int]()
    smallest = int(sizes.min())
    return Groups(
        number=len(sizes),
        smallest=smallest,
        mean=table.num_rows / len(sizes),
        largest=int(sizes.max()),
        bars=tuple(count_sizes(sizes)),
        diversity=diversity,
        prosecutor=1 / smallest,
    )


def _count_rows(table: AnyTable, names: Sequence[str]) -> Codes:
    """Return how many rows each group has, computed in parts: no array is as long as the table."""
    keys = [str(number) for number in range(len(names))]

    def count(part: pa.Table) -> pa.Table:
        plain = (cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells for cells in part.columns)
        return pa.table(list(plain), keys).group_by(keys).aggregate([([], "count_all")])

    found = pa.concat_tables(list(map(count, cut_table(table, names)))).group_by(keys).aggregate([("count_all", "sum")])
    return found.column("count_all_sum").to_numpy()


def count_sizes(sizes: Codes) -> list[tuple[int, int, int]]:
    """Return the number of groups of each size, or of each range of sizes if there are many different ones: (from, to, number),
    with wider ranges for larger sizes."""
    different = np.unique(sizes)
    if len(different) <= MOST_BARS:
        return [(int(size), int(size), int(np.count_nonzero(sizes == size))) for size in different]
    edges = np.unique(np.round(np.geomspace(float(different[0]), float(different[-1]) + 1, MOST_BARS + 1)).astype(np.int64))
    counts = np.histogram(sizes, bins=edges)[0]
    return [
        (int(low), int(high) - 1, int(count)) for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True) if count
    ]


def journalist_risk(released: AnyTable, everybody: AnyTable, names: Sequence[str]) -> float:
    """Return the largest chance of finding a person, for somebody who has a list of all records that the release was made from,
    with their quasi-identifiers as exact as released: 1 over the fewest of them that a released record can belong to. A blank
    fits every entry."""
    sides = [_count_combinations(table, names) for table in (released, everybody)]
    pairs = [encode_entries([side.column(name) for side, _ in sides]) for name in names]
    rows, all_of_them = (np.stack([pair[side] for pair in pairs], axis=1) for side in (0, 1))
    weights, known, fewest = sides[1][1], rows != BLANK, everybody.num_rows
    for pattern in np.unique(known, axis=0):
        those = rows[(known == pattern).all(axis=1)][:, pattern]
        if those.shape[1] == 0:
            continue
        number = group_by(list(np.concatenate([those, all_of_them[:, pattern]]).T))
        counts = np.bincount(number[len(those) :], weights=weights, minlength=int(number.max()) + 1)
        fewest = min(fewest, int(counts[number[: len(those)]].min()))
    return 1 / max(fewest, 1)


def _count_combinations(table: AnyTable, names: Sequence[str]) -> tuple[pa.Table, Codes]:
    """Return the different rows of some columns, and how many there are of each."""
    found, entries = combine_cells(table.column(name) for name in names)
    return pa.table(dict(zip(names, spell_rows(found.codes, entries), strict=True))), found.counts


def _number(table: AnyTable, name: str) -> npt.NDArray[np.integer[Any]]:
    """Return equal numbers for equal entries of a column, in any order; a blank one is an entry as well."""
    column = table.column(name)
    if pa.types.is_floating(column.type):
        return number_entries(column.to_numpy())
    return number_cells(column)[1]


# The limits that a policy sets, and the figures that they apply to: the expected error, and figures of only the released table.
#
# No gate is judged on a figure that compares released values with original ones: passing it would reveal something about the
# noise that was drawn.


ERROR = "expected error"
EXPECTED, ALONE = "expected from the data and the noise scales, before any noise", "of the released table alone"
LINKED = "simulated releases before the charge: the one that links most"
BLOCKED = "proved, not measured: how often a value is right, on average, of whom somebody names by the rest of the row"
OF_BLOCKS = "of the blocks in which values are swapped, before any noise"
NOBODYS = "rows are synthetic: no row has an original that it could be linked to"


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit that the policy sets, and the figure that it applies to. `at_least`: the limit is the smallest value that passes.
    `basis`: what the figure is computed from. `column`: the column that it is for, if it is for one."""

    name: str
    value: float
    limit: float
    at_least: bool = False
    basis: str = EXPECTED
    column: str = ""

    @property
    def is_of_error(self) -> bool:
        """Return whether it limits a mean squared error."""
        return self.name.startswith(ERROR)

    @property
    def passed(self) -> bool:
        """Return whether the value is within the limit (NaN is not)."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    @property
    def figure(self) -> float | None:
        """Return the value; None if there is none."""
        return None if np.isnan(self.value) else self.value

    @property
    def refusal(self) -> str:
        """Return the message for a failed gate: never the value, which may be computed from the data; for the released table,
        which is withheld, not even which property failed."""
        return self.describe("the figure is in the vault")

    def describe(self, where: str) -> str:
        """Return the gate as a sentence, with a note on where the figure is."""
        if self.basis == ALONE:
            return "a limit on the groups of the released table is not met (which one, and the figure, are in the vault)."
        if self.basis == LINKED:
            return f"all released columns together link more than {100 * self.limit:g}% of the rows ({where})."
        side = "under" if self.at_least else "over"
        return f"the {self.name} is {side} the limit {self.limit:g} ({where})."

    def to_json(self) -> dict[str, Any]:
        """Return the gate as a note keeps it: None for a missing figure."""
        return {**asdict(self), "value": self.figure}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Gate:
        """Return the gate stored in a note."""
        if not stored.keys() <= {field.name for field in fields(cls)}:
            raise TypeError("a gate has other parts than these")
        return cls(
            name=stored["name"],
            value=float("nan") if stored["value"] is None else stored["value"],
            limit=stored["limit"],
            at_least=stored["at_least"],
            basis=stored["basis"],
            column=stored["column"],
        )


def judge_gates(figures: Mapping[str, Mapping[str, Any]], gates: Gates) -> list[Gate]:
    """Return one gate for each column and kind of figure with a limit; a column without the figure fails."""
    kinds = (
        ("error", ERROR, gates.expected_error),
        ("relative_error", "expected relative error", gates.relative_error),
        ("atom_share", "expected difference of the share at an atom", gates.atom_share),
        ("ks", "expected Kolmogorov-Smirnov distance", gates.ks),
        ("group_mean", "expected difference of the mean of a group", gates.group_mean),
        ("group_error", "error to expect in the worst served group", gates.group_error),
    )
    judged: list[Gate] = []
    for figure, words, limits in kinds:
        for name, limit in limits.items():
            value = figures.get(name, {}).get(figure)
            judged.append(Gate(f"{words} of {name}", np.nan if value is None else float(value), float(limit), column=name))
    return judged


def judge_groups(groups: Groups | None, gates: Gates) -> list[Gate]:
    """Return one gate for each limit on the groups of released quasi-identifiers; without groups each fails."""

    def gate(name: str, value: float | None, limit: float, column: str = "") -> Gate:
        return Gate(name, np.nan if value is None else value, limit, True, ALONE, column)

    judged: list[Gate] = []
    if gates.anonymity_k is not None:
        smallest = None if groups is None else groups.smallest
        judged.append(gate("smallest group of released quasi-identifiers", smallest, gates.anonymity_k))
    for name, least in gates.l_diversity.items():
        value = None if groups is None else groups.diversity[name]
        judged.append(gate(f"l-diversity of {name}", value, least, name))
    return judged
