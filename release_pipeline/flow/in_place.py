"""Releases whose records stay where their source has them: of each column the vault keeps the different cells and how many
records have each, and tables of several columns are counted in the source."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.errors import Blocked, SourceError
from release_pipeline.flow.content import content_of
from release_pipeline.flow.reading import is_coded, read_values, typed_column
from release_pipeline.flow.site import Site
from release_pipeline.flow.spark_address import find_workers
from release_pipeline.policy import Policy
from release_pipeline.privacy.grid import IntArray
from release_pipeline.stages.audit import ATTACKED_SAMPLE
from release_pipeline.stages.column_table import select_cells
from release_pipeline.stages.counted import CountedInPlace, CountedRecords, Counting, DeliveredCells
from release_pipeline.stages.entries import find_encoders
from release_pipeline.stages.strategies import RECORD
from release_pipeline.store.in_place import COUNTED, TIMES, Batches, RecordsInPlace, open_table
from release_pipeline.store.loading import Columns, ReleaseFilter
from release_pipeline.store.raw import RawTable
from release_pipeline.store.source import SourceDoor
from release_pipeline.store.vault import Engine, ReleaseWorkspace

CELLS_OF = "cells_"  # what the names of tables of cells begin with
_compute: Any = pyarrow.compute  # its functions are made at run time


def find_place(
    site: Site,
    policy: Policy,
    workspace: ReleaseWorkspace,
    source: SourceDoor,
    columns: Columns,
    release: ReleaseFilter | None,
) -> RecordsInPlace | None:
    """Where the records stay: if nothing but counts is asked of them, and the site's engine counts in their source cells of all
    their types. The column of the person may have any."""
    if not policy.is_only_counted:
        return None
    counted = tuple(name for name in columns if name != policy.person_column)
    place = workspace.open_in_place(source, columns, release, Engine(site.engine, find_workers(site), counted))
    return place if place is not None and all(COUNTED.fullmatch(place.kinds[name]) for name in counted) else None


def content_of_tables(workspace: ReleaseWorkspace, tables: Sequence[str], snapshot: str) -> Any:
    """The hashes of these tables, and what pins the records beside them."""
    if not snapshot:
        return content_of(workspace, *tables)
    return [snapshot, {table: content_of(workspace, table) for table in tables}]


def read_numbers(
    policy: Policy, workspace: ReleaseWorkspace, source: str, snapshot: str, name: str
) -> tuple[npt.NDArray[np.float64], IntArray | None]:
    """The numbers of a column as they came, and how many records have each where that may be more than one. In the records a
    column is as it came, but where codes stand beside the values."""
    if snapshot:
        table = _name_table(policy, name)
        numbers, is_value = read_values(policy, name, workspace.cells(source, table))
        return numbers[is_value], workspace.read(table, [TIMES]).column(0).to_numpy()[is_value]
    if is_coded(policy, name):
        numbers, is_value = read_values(policy, name, workspace.raw(source))
        return numbers[is_value], None
    return workspace.read("records", [name]).column(name).to_numpy(), None


@dataclass(frozen=True, slots=True)
class Kept:
    """What the vault has of records that stay in their source: tables, how many records there are, and what pins them."""

    tables: list[str]
    records: int
    snapshot: str


def keep_cells(policy: Policy, workspace: ReleaseWorkspace, place: RecordsInPlace, source: str) -> Kept:
    """Count the cells of every column into tables of the vault. Whose records they are is in the table `raw`, as the source
    delivers it, until the checks have been judged. Refused where the source was changed meanwhile."""
    snapshot, tables, records = place.snapshot(), list[str](), set[int]()
    for name in place.kinds:
        if name == policy.person_column:
            workspace.write("raw", Batches(place.read_column(name)))
            tables.append("raw")
            records.add(workspace.count_rows("raw"))
        else:
            workspace.write(table := _name_table(policy, name), Batches(map(_even_out, place.count_cells(name))))
            records.add(int(np.sum(workspace.read(table, [TIMES]).column(0).to_numpy())))
            tables.append(table)
    if len(records) > 1 or place.snapshot() != snapshot:
        raise refuse_changed(source)
    return Kept(tables, max(records), snapshot)


def refuse_changed(source: str) -> SourceError:
    """That a source did not stay as it was."""
    remedy = "Run the release again once the source stays as it is."
    return SourceError("the source was changed while it was read.", where=source, remedy=remedy)


def _even_out(batch: pa.RecordBatch) -> pa.RecordBatch:
    """One zero and one NaN: an engine may give either of two that are equal, and these tables are hashed."""
    cells = batch.column(0)
    if not pa.types.is_floating(cells.type):
        return batch
    nan = pa.scalar(float("nan"), cells.type)
    even = _compute.if_else(_compute.is_nan(cells), nan, _compute.add(cells, pa.scalar(0.0, cells.type)))
    return pa.record_batch([even, batch.column(1)], schema=batch.schema)


def list_tables(policy: Policy, workspace: ReleaseWorkspace, source: str, tables: Collection[str]) -> dict[str, RawTable]:
    """By column the one of these tables of the vault that has its cells."""
    cells = {name: _name_table(policy, name) for name in policy.columns}
    found = {name: workspace.cells(source, table) for name, table in cells.items() if table in tables}
    if "raw" in tables:
        raw = workspace.raw(source)
        found |= dict.fromkeys(raw.kinds, raw)
    return found


def _name_table(policy: Policy, name: str) -> str:
    return f"{CELLS_OF}{list(policy.columns).index(name) + 1}"


@dataclass(frozen=True)
class Records:
    """What the stages ask of the records of a release: counts of all, and all or some of them one by one. `place`: where they
    lie, None where the vault has them; `snapshot`: what pinned them when they were checked."""

    policy: Policy
    workspace: ReleaseWorkspace
    source: str
    place: RecordsInPlace | None
    snapshot: str
    key: bytes

    def check(self, where: str) -> None:
        """Refuse where the source has other records by now than those that were checked."""
        if self.snapshot and (self.place is None or self.place.snapshot() != self.snapshot):
            raise Blocked(
                "the source has other records now than those that were checked.",
                where=where,
                remedy="Restore the source, or run the release from its start.",
            )

    @cached_property
    def counting(self) -> Counting | None:
        """How a method that counts has them counted."""
        if self.policy.method.family != "whole-table":
            return None
        encoders = find_encoders(self.policy)
        if self.place is None:
            return CountedRecords(self.workspace, encoders)
        cells: dict[str, DeliveredCells] = {}

        def find_cells(name: str) -> DeliveredCells:
            if name not in cells:
                table, encoder = _name_table(self.policy, name), encoders[name]
                typed = typed_column(self.policy, name, self.workspace.cells(self.source, table))
                read = self.workspace.read(table, [name, TIMES])
                delivered = read.column(name).combine_chunks()
                cells[name] = DeliveredCells(delivered, encoder.find(typed), read.column(TIMES).to_numpy())
            return cells[name]

        return CountedInPlace(self.place, encoders, find_cells)

    def read(self, table: str, columns: Sequence[str] | None, /, *, where: tuple[str, str] | None = None) -> pa.Table:
        """A table of the vault; of records that lie elsewhere a sample, as large as what is attacked."""
        if table != "records" or self.place is None:
            return self.workspace.read(table, columns, where=where)
        return select_cells(self._sample, columns, where)

    @cached_property
    def _sample(self) -> pa.Table:
        assert self.place is not None  # noqa: S101  for the type checker
        columns = list(find_encoders(self.policy))
        with open_table(self.place.sample(columns, ATTACKED_SAMPLE, self.key), self.source) as raw:
            typed: dict[str, Any] = {RECORD: pa.array(np.arange(raw.count_records(), dtype=np.int64))}
            return pa.table(typed | {name: typed_column(self.policy, name, raw) for name in columns})
