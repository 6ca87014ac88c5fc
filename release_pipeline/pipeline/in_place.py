"""The records of a release, as its stages read them: a copy in the vault; or the source itself, where stages need only counts.
Then the vault has the different cells of each column and how many records have each, and tables of several columns are counted in
the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.audit.audit import ATTACKED_SAMPLE
from release_pipeline.errors import Blocked, SourceError
from release_pipeline.formats.passed_stages import Ingested, Validated
from release_pipeline.masking import RECORD
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.pipeline.context import StageContext
from release_pipeline.pipeline.reading import (
    needed_columns,
    number_records,
    read_values,
    release_filter,
    typed_column,
    typed_parts,
)
from release_pipeline.pipeline.sources import find_workers
from release_pipeline.policy import Policy
from release_pipeline.policy.file.sections import Person
from release_pipeline.rows.checks import Facts, match_header
from release_pipeline.rows.columns import PART, ColumnTable, CutTable, Parts, find_encoders, select_cells
from release_pipeline.rows.counted import CountedInPlace, CountedRecords, Counting, DeliveredCells
from release_pipeline.store.in_place import COUNTED, TIMES, RecordsInPlace, open_table, read_persons
from release_pipeline.store.people import PersonKeys
from release_pipeline.store.raw import Columns, RawTable, ReleaseFilter
from release_pipeline.store.site import Site
from release_pipeline.store.source import SourceReader
from release_pipeline.store.vault import ReleaseWorkspace

CELLS_OF = "cells_"  # the beginning of the names of tables of cells
_OTHERWISE = ("BIT", "TIME WITH TIME ZONE", "UHUGEINT")  # types that Arrow delivers as others


@dataclass(frozen=True, slots=True)
class Kept:
    """The vault's part of the records: tables, how many records there are, and of those that stay in their source a snapshot and
    counts of persons."""

    tables: list[str]
    records: int
    snapshot: str = ""
    persons: dict[str, int] | None = None


def choose_columns(policy: Policy, source: SourceReader, release: str) -> tuple[Columns, ReleaseFilter | None]:
    """Return what is read of a source: the columns that the policy needs, and the filter for the records of the release."""
    names, _ = match_header(source.header, policy)
    needed = {name: names[name] for name in needed_columns(policy) if name in names}
    return needed, release_filter(policy, names, release)


def find_in_place(
    site: Site,
    policy: Policy,
    workspace: ReleaseWorkspace,
    source: SourceReader,
    columns: Columns,
    release: ReleaseFilter | None,
) -> RecordsInPlace | None:
    """Return the place of records that stay in their source: if only counts are needed, and the site's engine can count cells of
    all their types there. The column of the person may have any type that is the same in a copy."""
    if not policy.is_only_counted:
        return None
    counted = [name for name in columns if name != policy.person_column]
    place = workspace.open_in_place(source, columns, release, engine=site.engine, workers=find_workers(site))
    if place is None or not counted or not all(COUNTED.fullmatch(place.kinds[name]) for name in counted):
        return None
    return None if place.kinds.get(policy.person_column or "") in _OTHERWISE else place


def keep_records(
    site: Site,
    policy: Policy,
    workspace: ReleaseWorkspace,
    source: SourceReader,
    columns: Columns,
    release: ReleaseFilter | None,
) -> Kept:
    """Replace the release's tables in the vault by the records, or by the cells of their columns where they stay in
    their source."""
    workspace.drop(["raw", "records", "people", *(name for name in workspace.tables() if name.startswith(CELLS_OF))])
    place = find_in_place(site, policy, workspace, source, columns, release)
    if place is not None:
        return _keep_cells(site, policy, workspace, place, source.name)
    raw = workspace.ingest(source, columns, release=release, derive=policy.derive)
    return Kept(["raw"], raw.count_records())


def hash_tables(workspace: ReleaseWorkspace, tables: Sequence[str], snapshot: str) -> tuple[str, dict[str, dict[str, str]]]:
    """Return the snapshot of records in their source, and the hashes of these tables of the vault."""
    return snapshot, {table: workspace.hash_table(table) for table in tables}


def hash_people(policy: Policy, workspace: ReleaseWorkspace) -> dict[str, str]:
    """Return the hashes of the table of persons; none where no column has them."""
    return {} if policy.person_column is None or "people" not in workspace.tables() else workspace.hash_table("people")


def list_checked(ingested: Ingested) -> list[str]:
    """Return the tables that have the records once they were checked."""
    return [name for name in ingested.tables if name.startswith(CELLS_OF)] if ingested.snapshot else ["records"]


def read_numbers(
    policy: Policy, workspace: ReleaseWorkspace, ingested: Ingested, name: str
) -> tuple[npt.NDArray[np.float64], IntArray | None]:
    """Return the numbers of a column as they came, and how many records have each where that may be more than one. In the records
    a column is as it came, except where it has codes."""
    if ingested.snapshot:
        table = _name_table(policy, name)
        numbers, is_value = read_values(policy, name, workspace.cells(ingested.source, table))
        return numbers[is_value], workspace.read(table, [TIMES]).column(0).to_numpy()[is_value]
    if policy.columns[name].is_coded:
        numbers, is_value = read_values(policy, name, workspace.raw(ingested.source))
        return numbers[is_value], None
    return workspace.read("records", [name]).column(name).to_numpy(), None


def list_read_again(policy: Policy) -> list[str] | None:
    """Return the columns that are read as they were delivered once the checks were judged; None where that may be any."""
    if any(column.is_coded for column in policy.columns.values()):
        return None
    return [] if policy.person_column is None or policy.swap is None else [policy.person_column]


def list_person_keys(site: Site, population: str, column: str) -> PersonKeys:
    """Return the keys of the hashes of a population's persons. The last is for the hashes that identify persons across
    populations, where the column has the same name. Columns of other names are other identifiers, which cannot be compared."""
    purposes = ("persons", f"the persons of {population}", f"the persons of every population by {column}")
    first, of_population, everywhere = (bytes.fromhex(site.keyed_hash(purpose.encode())) for purpose in purposes)
    return PersonKeys(first, of_population, everywhere)


def write_people(site: Site, policy: Policy, workspace: ReleaseWorkspace, raw: RawTable) -> dict[str, int] | None:
    """Write into the vault who is in its records, and return counts of persons; None where no column has them."""
    if policy.person_column not in raw.kinds:
        return None
    return _write_people(site, policy, workspace, partial(raw.persons, policy.person_column), raw.count_records())


def _write_people(
    site: Site, policy: Policy, workspace: ReleaseWorkspace, read: Callable[[bytes], Iterable[pa.Array]], records: int
) -> dict[str, int]:
    """Write into the vault who is in so many records, by hashes that are read under a key."""
    assert isinstance(policy.person, Person)  # noqa: S101  for the type checker
    keys = list_person_keys(site, policy.population, policy.person.column)
    allowed = policy.person.records_per_release
    return workspace.write_people(read(keys.first), keys, records=records, allowed=allowed)


def list_people(site: Site, policy: Policy, workspace: ReleaseWorkspace, source: str) -> list[str]:
    """Return the tables with whose records they are; that of the persons in the records' order, where values are swapped, is
    written now."""
    column = policy.person_column
    if column is None:
        return []
    if policy.swap is None:
        return ["people"]
    workspace.write_owners(source, column, list_person_keys(site, policy.population, column))
    return ["people", "owners"]


def stored_table(workspace: ReleaseWorkspace, name: str, columns: Sequence[str] | None = None) -> CutTable:
    """Return a table of the vault, or some of its columns, which come some rows at a time."""
    names = workspace.columns(name) if columns is None else tuple(columns)
    slices = partial(workspace.slices, name, rows=PART)
    return CutTable(names, workspace.count_rows(name), lambda column: workspace.read(name, [column]).column(0), slices)


def _keep_cells(site: Site, policy: Policy, workspace: ReleaseWorkspace, in_place: RecordsInPlace, source: str) -> Kept:
    """Count the cells of every column into tables of the vault, and write there whose records they are. Refused where the source
    was changed meanwhile."""
    snapshot, records, tables, persons = in_place.snapshot(), set[int](), list[str](), None
    person = policy.person_column
    for name, cells in in_place.count_cells([name for name in in_place.kinds if name != person]):
        tables.append(_name_table(policy, name))
        workspace.write(tables[-1], cells)
        records.add(int(np.sum(workspace.read(tables[-1], [TIMES]).column(0).to_numpy())))
    if person is not None and person in in_place.kinds:
        read = partial(read_persons, _count_read(in_place.read_column(person), records), person, source)
        persons = _write_people(site, policy, workspace, read, max(records))
        tables.append("people")
    if len(records) > 1 or in_place.snapshot() != snapshot:
        raise refuse_changed(source)
    return Kept(tables, max(records), snapshot, persons)


def _count_read(batches: Iterable[pa.RecordBatch], records: set[int]) -> Iterator[pa.RecordBatch]:
    """Yield these batches, and add how many records they have."""
    count = 0
    for batch in batches:
        yield batch
        count += len(batch)
    records.add(count)


def refuse_changed(source: str) -> SourceError:
    """Return the error that a source did not stay as it was."""
    remedy = "Run the release again once the source stays as it is."
    return SourceError("the source was changed while it was read.", where=source, remedy=remedy)


def open_tables(policy: Policy, workspace: ReleaseWorkspace, ingested: Ingested) -> dict[str, RawTable]:
    """Return by column the table of the vault that has its cells, as they were delivered."""
    cells = {name: _name_table(policy, name) for name in policy.columns}
    opened = {name: workspace.cells(ingested.source, table) for name, table in cells.items() if table in ingested.tables}
    if "raw" in ingested.tables:
        raw = workspace.raw(ingested.source)
        opened |= dict.fromkeys(raw.kinds, raw)
    return opened


def write_records(
    policy: Policy, workspace: ReleaseWorkspace, columns: Sequence[str], tables: Mapping[str, RawTable], facts: Facts
) -> None:
    """Write the table `records`: these columns as the policy types them. One with entries that are not declared stays as it was
    delivered: the checks refuse it."""

    def type_column(name: str) -> Any:
        if name == RECORD:
            return Parts(pa.int64(), partial(number_records, facts.records))
        is_other = bool(facts.columns.get(name, {}).get("undeclared"))
        return tables[name].categories(name) if is_other else typed_parts(policy, name, tables[name], facts.records)

    workspace.write("records", ColumnTable((RECORD, *columns), facts.records, type_column))


def count_cells(policy: Policy, workspace: ReleaseWorkspace, validated: Validated) -> dict[str, int]:
    """How many different cells columns were delivered with, of records that stay where they are."""
    tables = {name: _name_table(policy, name) for name in policy.columns}
    return {name: workspace.count_rows(table) for name, table in tables.items() if table in validated.tables}


def _name_table(policy: Policy, name: str) -> str:
    return f"{CELLS_OF}{list(policy.columns).index(name) + 1}"


@dataclass(frozen=True)
class Records:
    """The records of a release for its stages: counts of all, and all or some of them one by one. `in_place`: those of the
    source, None where the vault has them; `snapshot`: their state when they were checked."""

    policy: Policy
    workspace: ReleaseWorkspace
    source: str
    in_place: RecordsInPlace | None
    snapshot: str
    key: bytes

    def check(self, where: str) -> None:
        """Refuse where the source's records differ from those that were checked."""
        if self.snapshot and (self.in_place is None or self.in_place.snapshot() != self.snapshot):
            raise Blocked(
                "the source has other records now than those that were checked.",
                where=where,
                remedy="Restore the source, or run the release from its start.",
            )

    @cached_property
    def counting(self) -> Counting | None:
        """Return the counting of the records for a method that counts."""
        if self.policy.method.family != "whole-table":
            return None
        encoders = find_encoders(self.policy)
        if self.in_place is None:
            return CountedRecords(self.workspace, encoders)

        def read_parts(name: str) -> Iterator[tuple[pa.Array, IntArray, IntArray]]:
            table, encoder, first = _name_table(self.policy, name), encoders[name], 0
            raw = self.workspace.cells(self.source, table)
            for part in self.workspace.slices(table, [name, TIMES], rows=PART):
                typed = typed_column(self.policy, name, raw.between(first, first + part.num_rows))
                yield part.column(name).combine_chunks(), encoder.find(typed), part.column(TIMES).to_numpy()
                first += part.num_rows

        return CountedInPlace(self.in_place, encoders, lambda name: DeliveredCells.of_parts(read_parts(name)))

    def read(self, table: str, columns: Sequence[str] | None, /, *, where: tuple[str, str] | None = None) -> pa.Table:
        """Return a table of the vault; of records that are elsewhere a sample, as large as the attacks need."""
        if table != "records" or self.in_place is None:
            return self.workspace.read(table, columns, where=where)
        return select_cells(self._sample, columns, where)

    @cached_property
    def _sample(self) -> pa.Table:
        assert self.in_place is not None  # noqa: S101  for the type checker
        columns = list(find_encoders(self.policy))
        with open_table(self.in_place.sample(columns, ATTACKED_SAMPLE, self.key), self.source) as raw:
            typed: dict[str, Any] = {RECORD: pa.array(np.arange(raw.count_records(), dtype=np.int64))}
            return pa.table(typed | {name: typed_column(self.policy, name, raw) for name in columns})


def open_records(context: StageContext, workspace: ReleaseWorkspace, validated: Validated) -> Records:
    """Return the records that were validated; refused where the source has others by now."""
    name, in_place = "", None
    if validated.snapshot:
        source = context.open_source(validated.table_version)
        columns, release = choose_columns(context.policy, source, context.id.release)
        name, in_place = source.name, find_in_place(context.site, context.policy, workspace, source, columns, release)
    key = bytes.fromhex(context.site.keyed_hash(f"sample of {context.id}".encode()))
    records = Records(context.policy, workspace, name, in_place, validated.snapshot, key)
    records.check(str(context.id))
    return records
