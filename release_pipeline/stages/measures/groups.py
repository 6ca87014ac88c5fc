"""Groups of records that share their released quasi-identifiers: how small they are, and what they give away.

A prosecutor knows that a person is in the release, a journalist only that the person is in the population that it was drawn
from (EED08).

The sizes and l-diversity are of the released table alone, so that a gate may limit them. The journalist's risk looks
at the records that the release was made of, and is internal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.privacy.groups import group_by
from release_pipeline.privacy.risk import distinct_diversity, number_entries
from release_pipeline.stages.column_table import AnyTable, cut_table, number_cells
from release_pipeline.stages.measures.features import BLANK, Codes, encode_entries
from release_pipeline.stages.suppress import combine_cells, spell_rows

MOST_BARS = 40


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one released table. `bars`: how many groups there are of sizes from one to another. `diversity`: of every
    kept confidential column, the fewest different values in a group, or block. `prosecutor`: the chance of finding somebody of
    the smallest group, for who knows that the person is in the table."""

    number: int
    smallest: int
    mean: float
    largest: int
    bars: tuple[tuple[int, int, int], ...]
    diversity: dict[str, int]
    prosecutor: float

    def to_json(self) -> dict[str, Any]:
        """As evidence keeps it."""
        return asdict(self)


def measure_groups(table: AnyTable, policy: Policy, blocks: Codes | None = None) -> Groups | None:
    """The groups of a released table; None where no quasi-identifier is released that makes any, or no record is left. `blocks`:
    of swapped values, that of each row: what a group gives away is then measured of these, which are parts of the groups."""
    names = policy.released_quasi
    if not names or table.num_rows == 0:
        return None
    secrets = [
        name
        for name, column in policy.released_columns.items()
        if column.role == "confidential" and not isinstance(column, NoiseColumn)
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
    """How many rows each group has, part by part: nothing is as long as the table."""
    keys = [str(number) for number in range(len(names))]

    def count(part: pa.Table) -> pa.Table:
        plain = (cells.cast(cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells for cells in part.columns)
        return pa.table(list(plain), keys).group_by(keys).aggregate([([], "count_all")])

    found = pa.concat_tables(list(map(count, cut_table(table, names)))).group_by(keys).aggregate([("count_all", "sum")])
    return found.column("count_all_sum").to_numpy()


def count_sizes(sizes: Codes) -> list[tuple[int, int, int]]:
    """How many groups there are of each size, or of each range of sizes where there are many different ones: (from, to, number),
    ranges wider the larger the sizes."""
    different = np.unique(sizes)
    if len(different) <= MOST_BARS:
        return [(int(size), int(size), int(np.count_nonzero(sizes == size))) for size in different]
    edges = np.unique(np.round(np.geomspace(float(different[0]), float(different[-1]) + 1, MOST_BARS + 1)).astype(np.int64))
    counts = np.histogram(sizes, bins=edges)[0]
    return [
        (int(low), int(high) - 1, int(count)) for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True) if count
    ]


def journalist_risk(released: AnyTable, everybody: AnyTable, names: Sequence[str]) -> float:
    """The largest chance of finding somebody for who has a list of all records that the release was made of, with their
    quasi-identifiers as exact as released: 1 over the fewest of them that a released record can be of. A blank fits every entry.
    """
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
    """The different rows of some columns, and how many there are of each."""
    found, entries = combine_cells(table.column(name) for name in names)
    return pa.table(dict(zip(names, spell_rows(found.codes, entries), strict=True))), found.counts


def _number(table: AnyTable, name: str) -> npt.NDArray[np.integer[Any]]:
    """Equal numbers for equal entries of a column, in any order; a blank one is an entry as well."""
    column = table.column(name)
    if pa.types.is_floating(column.type):
        return number_entries(column.to_numpy())
    return number_cells(column)[1]
