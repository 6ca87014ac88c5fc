"""Promises that are counted: how small the groups of a released table are, and how many originals the confidence boxes of its
records hold.

They are counted here directly from the definitions, not by the functions that the stages use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.claims.trials import derive_secret, read_records, release_tables, say_nothing
from release_pipeline.errors import InvalidArgument
from release_pipeline.masking import CLASS, RECORD, SWAPPED, find_strategy
from release_pipeline.masking.swapping import BLOCK, SwapStrategy
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.samples import bound_share
from release_pipeline.mechanisms.risk.standing_out import confidence_width
from release_pipeline.policy import Policy
from release_pipeline.rows.columns import Read, load_table, read_with

NOBODY = 10**9  # what was seen if no record had any


def count_smallest(policy: Policy, tables: Sequence[pa.Table], names: Sequence[str], *, draws: int) -> tuple[int, int]:
    """Return the size of the smallest group of records with equal entries in these columns, in so many releases of each table;
    and the number of releases."""
    smallest, releases = NOBODY, 0
    for number, table in enumerate(tables):
        for released, _ in release_tables(policy, table, draws=draws, purpose=f"groups {number}"):
            releases += 1
            rows = zip(*(released.column(name).to_pylist() for name in names), strict=True)
            smallest = min([smallest, *Counter(rows).values()])
    return smallest, releases


def count_intervals(policy: Policy, tables: Sequence[pa.Table], *, draws: int) -> tuple[int, int]:
    """Return the fewest originals that the confidence box of a released record holds, among those that hold any, and the number
    of releases. A box holds the originals of the record's class whose distance to the released numbers is within the noise of the
    class at that confidence."""
    rule = policy.suppress
    confidence = rule.confidence if rule is not None else None
    if confidence is None:
        raise InvalidArgument("the policy suppresses nothing by confidence, so that no interval is promised.", where="suppress")
    fewest, releases = NOBODY, 0
    for number, table in enumerate(tables):
        for released, made in release_tables(policy, table, draws=draws, purpose=f"intervals {number}"):
            releases += 1
            if released.num_rows:
                fewest = min(fewest, _fewest_inside(policy, table, released, made, confidence))
    return fewest, releases


def _fewest_inside(policy: Policy, table: pa.Table, released: pa.Table, made: dict[str, pa.Table], confidence: Decimal) -> int:
    group = made["membership"].column(CLASS).to_numpy()
    records = released.column(RECORD).to_numpy()
    inside = group[records][:, np.newaxis] == group
    statistics = made["statistics"]
    of, scales = np.array(statistics.column("column_name").to_pylist()), statistics.column("scale").to_numpy()
    for name, column in policy.noise_columns.items():
        grid, columns = column.exact_grid, len(policy.noise_columns)
        original, seen = grid.quantise(table.column(name).to_numpy()), grid.quantise(released.column(name).to_numpy())
        scale_of_record = scales[of == name][group[records]].tolist()
        reach = np.array([confidence_width(scale, confidence, columns) for scale in scale_of_record])
        inside &= np.abs(seen[:, np.newaxis] - original) <= reach[:, np.newaxis]
    counts = inside.sum(axis=1)
    return int(counts[counts > 0].min(initial=NOBODY))


# A test of the promises of swapping: where each value of a row comes from, and how often from the row's own record.
#
# The real blocks and permutations are drawn, with the numbers of records in place of masked values: so each row shows which
# record its values come from. Counted here directly from the lemma (methods.md section 10), not by the functions of the stages.


DOUBT = 0.001  # the chance that a true share appears broken


@dataclass(frozen=True, slots=True)
class Traced:
    """One release: the record whose position each row has, its block, the codes of its kept entries (rows by columns), and by
    swapped column the record that its value comes from."""

    record: IntArray
    block: IntArray
    entries: IntArray
    source: Mapping[str, IntArray]


@dataclass(frozen=True, slots=True)
class _Tracer:
    """A method whose masked values are the numbers of their records."""

    policy: Policy
    method: Any

    def mask(self, read: Read, **how: Any) -> pa.Table:
        """Return the masked records, with record numbers in the swapped columns."""
        masked: pa.Table = load_table(self.method.mask(read, **how))
        for name in self.policy.swapped_columns:
            masked = masked.set_column(masked.column_names.index(name), name, masked.column(RECORD))
        return masked


def count_blocks(policy: Policy, tables: Sequence[pa.Table], *, draws: int) -> tuple[int, int]:
    """Return the fewest records that a value of a row may come from, in so many releases of each table, and how many releases
    there were. 0 if a value comes from another block, a block has records with other kept entries, or a column's list changes."""
    fewest, releases = len(tables[0]), 0
    for traced in _trace(policy, tables, draws=draws, purpose="blocks"):
        releases += 1
        fewest = min([fewest, *(_count_sources(traced, block) for block in np.unique(traced.block))])
    return fewest, releases


def _count_sources(traced: Traced, block: int) -> int:
    rows = np.flatnonzero(traced.block == block)
    members = np.sort(traced.record[rows])
    is_alike = len(np.unique(traced.entries[rows], axis=0)) == 1
    is_whole = all(np.array_equal(np.sort(source[rows]), members) for source in traced.source.values())
    return len(rows) if is_alike and is_whole else 0


def count_links(policy: Policy, tables: Sequence[pa.Table], *, draws: int) -> tuple[float, int, str]:
    """Return the largest share of links that is proved with a confidence of 99.9%, out of how many links, and which kind: a value
    in the row of its own record, or two values of one record in a row. Only the first row of each block of each release is used,
    because blocks are independent. Half of the releases choose the kind, and the other half prove it."""
    seen: dict[str, tuple[list[bool], list[bool]]] = {}
    for number, traced in enumerate(_trace(policy, tables, draws=draws, purpose="links")):
        first = np.unique(traced.block, return_index=True)[1]
        for link, is_linked in _list_links(traced):
            seen.setdefault(link, ([], []))[number % 2].extend(is_linked[first].tolist())
    worst = max(seen, key=lambda link: np.mean(seen[link][0]) if seen[link][0] else 0.0)
    left = seen[worst][1]
    low, _ = bound_share([sum(left)], len(left), DOUBT)
    return float(low[0]), len(left), worst


def _list_links(traced: Traced) -> Iterator[tuple[str, npt.NDArray[np.bool_]]]:
    for name, source in traced.source.items():
        yield f"{name} in the row of its own record", source == traced.record
    for (name, source), (other_name, other) in combinations(traced.source.items(), 2):
        yield f"{name} and {other_name} of one record", source == other


def _trace(policy: Policy, tables: Sequence[pa.Table], *, draws: int, purpose: str) -> Iterator[Traced]:
    """Yield so many releases of each table, without those that leave no row."""
    strategy = find_strategy(policy)
    if not isinstance(strategy, SwapStrategy):
        raise InvalidArgument("the policy swaps nothing.", where="protect.swap")
    tracer = replace(strategy, strategy=_Tracer(policy, strategy.strategy))  # pyright: ignore[reportArgumentType]
    how: dict[str, Any] = {"context": (), "progress": say_nothing}
    for index, table in enumerate(tables):
        read = read_records(table)
        made = strategy.group(read, secret=derive_secret(purpose, "grouping", index), **how).tables
        for number in range(draws):
            secret = derive_secret(purpose, "swap", index, number)
            known = read_with(made, read)
            known = read_with(strategy.measure(known, secret=secret, **how), known)
            rows = load_table(strategy.suppress(known, tracer.mask(known, secret=secret, **how)).table)
            if rows.num_rows:
                yield _read(policy, made[SWAPPED], rows)


def _read(policy: Policy, blocks: pa.Table, rows: pa.Table) -> Traced:
    record = rows.column(RECORD).to_numpy()
    texts = [np.array(list(map(str, rows.column(name).to_pylist()))) for name in policy.released_quasi]
    codes = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in texts]
    return Traced(
        record,
        blocks.column(BLOCK).to_numpy()[record],
        np.column_stack([np.zeros(len(record), dtype=np.int64), *codes]),
        {name: rows.column(name).to_numpy() for name in policy.swapped_columns},
    )
