"""How many arrays as long as the table a stage holds at once: as few with six columns as with two, and none where they are on
disk."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.privacy import arrays, distributions, risk
from release_pipeline.privacy.by_value import quantiles
from release_pipeline.privacy.noise import orders
from release_pipeline.privacy.records import ArrayRecords
from release_pipeline.privacy.whole_table import expected
from release_pipeline.privacy.whole_table import measure as measuring
from release_pipeline.stages import audit, column_table
from release_pipeline.stages.column_table import ColumnTable, select_cells
from release_pipeline.stages.compared import Compared, Read
from release_pipeline.stages.expected_linkage import expect_linkage
from release_pipeline.stages.measures import columns as measures
from release_pipeline.stages.measures import group_means
from release_pipeline.stages.measures.columns import measure_columns
from release_pipeline.stages.measures.groups import measure_groups
from release_pipeline.stages.package import check_released
from release_pipeline.stages.strategies import RECORD, find_strategy
from release_pipeline.store.scratch import OnDisk

_compute: Any = pyarrow.compute  # its functions are made at run time
ROWS = 200_000

PIECES = (
    (column_table, "PART"),
    (arrays, "SUMMED"),
    (arrays, "PIECE"),
    (distributions, "_CHUNK"),
    (orders, "_SLICE"),
    (quantiles, "_AT_ONCE"),
    (measuring, "SUMMED"),
    (expected, "SUMMED"),
    (group_means, "SUMMED"),
    (risk, "_CHUNK"),
    (risk, "_AT_ONCE"),
)
ON_DISK = 14  # bytes of a record: pieces of 65,536 of 200,000 records, of which there are some at once, are most of it
SECRET = bytes(range(32))
HEAD = """\
gates: {linkage: 100%}
policy: many
steward: ana
population: folk
source: {path: people.csv}
person: each-row
releases: once
"""
TEXT = (
    HEAD
    + """\
protect: {method: METHOD, epsilon: 4, k: 20}
columns:
  town: {role: quasi, do: keep, values: [north, south, east], why: needed}
COLUMNS
suppress: {quasi_groups_below: 5, at_most: 50%}
"""
)


def make_policy(method: str, columns: int, *, k: int = 20) -> Policy:
    """So many noise columns beside one that is kept."""
    noise = [
        f"  c{number}: {{role: confidential, do: noise, domain: [0, 20000], grid: 1, outside: clamp, why: known}}"
        for number in range(columns)
    ]
    text = (
        TEXT.replace("METHOD", method)
        .replace(", k: 20", f", k: {k}" if method not in ("laplace", "dp-table") else "")
        .replace("COLUMNS", "\n".join(noise))
    )
    if method == "dp-table":
        text = text.replace("do: noise", "do: synthesise").replace("do: keep", "do: synthesise").replace(", why: needed", "")
        text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("suppress"))
    return parse_policy(text, name="many.yaml")


class Stored:
    """What a vault has: tables, and columns that came by themselves, or part by part, in Arrow's memory, which is not counted."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}
        self.columns: dict[str, dict[str, list[Any]]] = {}

    def keep(self, table: str, column: str, values: Any) -> None:
        """As the vault does."""
        parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        own = [part if pa.types.is_string(part.type) else _compute.add(part, pa.scalar(0, part.type)) for part in parts]
        self.columns.setdefault(table, {}).setdefault(column, []).extend(own)

    def read(self, table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        """The same."""
        if table in self.tables:
            return select_cells(self.tables[table], columns, where)
        return select_cells(
            pa.table({name: pa.chunked_array(all_) for name, all_ in self.columns[table].items()}), columns, where
        )


def read_made(stored: Stored) -> Read:
    """Columns that are made when they are asked for, as the vault reads them."""

    def make(name: str) -> Any:
        rng = np.random.default_rng(sum(map(ord, name)))
        if name == "town":
            return pa.array(np.array(["north", "south", "east"], dtype=object)[rng.integers(0, 3, ROWS)])
        return pa.array(np.round(np.minimum(rng.lognormal(7, 1, ROWS), 20_000)))

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        if table != "records":
            return stored.read(table, columns, where=where)
        return pa.table({name: make(name) for name in columns or ()})

    return read


def measure_peak(task: Callable[[], object]) -> float:
    """The most bytes of a record that NumPy and Python held at once."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1] / ROWS
    finally:
        tracemalloc.stop()


def read_from_disk(disk: OnDisk, stored: Stored) -> Read:
    """The same, columns being made once and kept in files."""
    made = read_made(Stored())
    kept: dict[str, Any] = {}

    def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        if table != "records":
            return stored.read(table, columns, where=where)
        return pa.table({name: kept[name] for name in columns or ()})

    for name in ("town", *(f"c{number}" for number in range(6))):
        column = made("records", [name]).column(0)
        kept[name] = disk.keep_column(iter(column.chunks), column.type, ROWS)
    return read


def keep_on_disk(disk: OnDisk, column: Any, rows: int = ROWS) -> Any:
    """A column that a stage made, as the vault reads it again."""
    parts = column if isinstance(column, Iterator) else iter(column.chunks)
    first = next(parts)
    return disk.keep_column(chain([first], parts), first.type, rows)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "k"), [("idp-cbls", 10), ("idp-cbls", 500), ("dp-cdf", 500), ("dp-cdf", 1), ("laplace", 0)])
def test_on_disk_a_stage_holds_less_than_two_arrays(method: str, k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it is in the chain: what is left are pieces, arrays of the clusters, and a byte or two of each record."""
    monkeypatch.setattr(measures, "HELD", 0)
    for module, name in PIECES:
        monkeypatch.setattr(module, name, 4_096)
    disk, policy = OnDisk(tmp_path, 4_096), make_policy(method, 2, k=k)
    strategy, stored = find_strategy(policy, records=ArrayRecords(disk)), Stored()
    read = read_from_disk(disk, stored)

    def group() -> None:
        stored.tables |= strategy.group(read, secret=SECRET, context=(), progress=quiet, keep=stored.keep).tables

    def expect() -> None:
        strategy.expect(read, secret=SECRET, progress=quiet)

    expect()  # what is loaded for it is not counted

    def link() -> None:
        expect_linkage(policy, strategy, read, secret=SECRET, progress=quiet, keep=stored.keep)
        stored.columns.clear()

    monkeypatch.setattr(audit, "ATTACKED_SAMPLE", 3_000)
    peaks = {"expect": measure_peak(expect), "link": measure_peak(link), "group": measure_peak(group)}
    measured: dict[str, pa.Table] = {}
    peaks["measure"] = measure_peak(lambda: measured.update(strategy.measure(read, secret=SECRET, context=(), progress=quiet)))
    stored.tables |= measured
    masked, columns = strategy.mask(read, secret=SECRET, context=(), progress=quiet), dict[str, Any]()
    assert isinstance(masked, ColumnTable)
    peaks["mask"] = measure_peak(
        lambda: columns.update({name: keep_on_disk(disk, masked.parts(name)) for name in masked.column_names})
    )
    table, found = ColumnTable(tuple(columns), ROWS, lambda name: columns[name]), list[Any]()
    peaks["suppress"] = measure_peak(lambda: found.append(strategy.suppress(read, table)))
    compared = Compared(policy, read, table, columns[RECORD].to_numpy(), table, arrays=disk)
    peaks["groups"] = measure_peak(lambda: measure_groups(table, policy, disk))
    peaks["audit"] = measure_peak(lambda: measure_columns(compared))
    published = ColumnTable(tuple(policy.published_columns), ROWS, table.make)
    peaks["publish"] = measure_peak(lambda: list(check_released(published, policy, rows=ROWS, on_grid=True)))
    print(method, k, {stage: round(peak, 1) for stage, peak in peaks.items()})
    assert max(peaks.values()) <= ON_DISK, {stage: round(peak, 1) for stage, peak in peaks.items()}


def quiet(_: str) -> None:
    """No progress."""
