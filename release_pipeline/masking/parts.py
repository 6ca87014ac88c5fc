"""Random parts of the records, each masked on its own by the policy's method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from release_pipeline.masking.centroids import CentroidStrategy
from release_pipeline.masking.classes import ClassStrategy
from release_pipeline.masking.grouping import Classes, Ints, make_classes, unite_classes
from release_pipeline.masking.strategy import (
    RECORD,
    Contexts,
    Figures,
    Grouped,
    Numbers,
    Progress,
    merge_evidence,
    merge_expected,
)
from release_pipeline.mechanisms.clusters.rank import draw_parts
from release_pipeline.mechanisms.noise import noise_stream, shuffled_positions
from release_pipeline.policy import Policy
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.columns import Read, load_table, needed_for, select_cells

PART = f"{OURS}_part"  # the part of a record; never released


def _draw_expected(policy: Policy, records: int, secret: bytes) -> Ints:
    """Random parts like those of the release, and not those themselves."""
    return draw_parts(records, policy.parts, noise_stream(secret, "expected parts"))


def _draw(policy: Policy, records: int, secret: bytes, context: Contexts) -> Ints:
    """The part of each record."""
    return draw_parts(records, policy.parts, noise_stream(secret, *context, "parts"))


def _count(policy: Policy, read: Read) -> int:
    return read("records", [next(iter(policy.noise_columns))]).num_rows


def _state_common(policy: Policy, of_parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts that all parts have in common, and how many parts there are."""
    common = dict(of_parts[0]) if all(facts == of_parts[0] for facts in of_parts) else {}
    return {**common, "parts": policy.parts}


@dataclass(frozen=True, slots=True)
class PartitionedClassStrategy(ClassStrategy):
    """(k,epsilon)-anonymity of random parts: each part is grouped on its own, and classes with equal labels are one class.

    A reader of the release sees labels and no parts, so any two records with the same labels must be hard to tell apart: noise is
    as large as the numbers of a label are far apart over all parts, and whom suppression drops is decided over all of them. From
    the classes on everything is as without parts.
    """

    makes: ClassVar[tuple[str, ...]] = (*ClassStrategy.makes, "parts")

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """As without parts, of random parts like those of the release, and not those themselves."""
        cached = _Cache(read)
        of_parts, rows = self._group_each(_draw_expected(self.policy, _count(self.policy, read), secret), cached, progress)
        return self.expect_of(unite_classes(of_parts, rows), cached.read, secret=secret)

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """The tables of the method, and `parts`."""
        parts = _draw(self.policy, _count(self.policy, read), secret, context)
        cached = _Cache(read)
        of_parts, rows = self._group_each(parts, cached, progress)
        made = self.group_of(unite_classes(of_parts, rows), cached.read)
        tables = {**made.tables, "parts": pa.table({PART: pa.array(parts)})}
        evidence = {name: {"parts": len(rows), **figures} for name, figures in made.evidence.items()}
        facts = _state_common(self.policy, [self.facts_of(classes) for classes in of_parts])
        return Grouped(tables, evidence, facts)

    def _group_each(self, parts: Ints, cached: _Cache, progress: Progress) -> tuple[list[Classes], list[Ints]]:
        """The classes of each part, and which records it has."""
        of_parts: list[Classes] = []
        everybody = _rows_of(parts)
        for number, rows in enumerate(everybody):
            progress(f"part {number + 1} of {len(everybody)}")
            of_parts.append(make_classes(self.policy, self.protect, cached.within(rows, {}), progress))
        return of_parts, everybody


@dataclass(frozen=True, slots=True)
class PartitionedStrategy(CentroidStrategy):
    """The strategy of a method of clusters, or one that counts by value, followed once for each part with streams of its own. The
    tables of the parts follow one another, and `parts` has the part of each record. Suppression and audit see all of them."""

    strategy: CentroidStrategy
    suppression_reads: ClassVar[tuple[str, ...]] = ("validated", "microaggregated")
    makes: ClassVar[tuple[str, ...]] = ("parts",)

    def expect_columns(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """Of random parts like those of the release, and not those themselves."""
        cached, everybody = _Cache(read), _rows_of(_draw_expected(self.policy, _count(self.policy, read), secret))
        of_parts = [self.strategy.expect_columns(cached.within(rows, {}), secret=secret, progress=progress) for rows in everybody]

        def read_values(name: str) -> Numbers:
            column, numbers = self.policy.noise_columns[name], cached.read("records", [name]).column(name).to_numpy()
            snapped = column.exact_grid.snap(numbers)
            return np.where(column.find_reasons(numbers) < 0, snapped, np.nan) if column.reasons else snapped

        return merge_expected(of_parts, everybody, read_values)

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """The tables of the method, part by part, and `parts`."""
        parts = _draw(self.policy, _count(self.policy, read), secret, context)
        made: dict[str, list[pa.Table]] = {}
        evidence: list[Figures] = []
        facts: list[Mapping[str, Any]] = []
        cached, everybody = _Cache(read), _rows_of(parts)
        for part, rows in enumerate(everybody):
            progress(f"part {part + 1} of {len(everybody)}")
            done = self.strategy.group(
                cached.within(rows, {}), secret=secret, context=(*context, "part", part), progress=progress
            )
            _add_part(made, done.tables, part)
            evidence.append(done.evidence)
            facts.append(done.facts)
        tables = {name: pa.concat_tables(list_of) for name, list_of in made.items()}
        tables["parts"] = pa.table({PART: pa.array(parts)})
        return Grouped(tables, merge_evidence(evidence), _state_common(self.policy, facts))

    def measure(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Mapping[str, pa.Table]:
        """What the method measures of each part."""
        made: dict[str, list[pa.Table]] = {}
        for part in self._each(read, self.strategy.makes):
            own = (*context, "part", part.number)
            measured = self.strategy.measure(part.read, secret=secret, context=own, progress=progress)
            _add_part(made, measured, part.number)
        return {name: pa.concat_tables(list_of) for name, list_of in made.items()}

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> pa.Table:
        """The masked records of all parts in one random order: it shows no part."""
        tables: list[pa.Table] = []
        for part in self._each(read, (*self.strategy.makes, *self.strategy.measures)):
            done = self.strategy.mask(part.read, secret=secret, context=(*context, "part", part.number), progress=progress)
            tables.append(_renumber(load_table(done), part.rows))
        table = pa.concat_tables(tables).combine_chunks()
        order = shuffled_positions(table.num_rows, noise_stream(secret, *context, "shuffle of all parts"))
        return table.take(pa.array(order))

    def _each(self, read: Read, names: Sequence[str]) -> Iterator[_Part]:
        """Each part, and its share of these tables."""
        cached = _Cache(read)
        stored = {name: read(name, None) for name in names}
        first = {name: table.column(PART).to_numpy() for name, table in stored.items()}  # parts follow one another
        for number, rows in enumerate(_rows_of(read("parts", None).column(PART).to_numpy())):
            tables: dict[str, pa.Table] = {}
            for name, table in stored.items():
                begin, end = np.searchsorted(first[name], [number, number + 1]).tolist()
                tables[name] = table.slice(begin, end - begin).drop_columns([PART])
            yield _Part(number, rows, cached.within(rows, tables))


def _add_part(made: dict[str, list[pa.Table]], tables: Mapping[str, pa.Table], part: int) -> None:
    """The tables of a part behind those of the parts before it, with its number."""
    for name, table in tables.items():
        number = pa.array(np.full(table.num_rows, part, dtype=np.int64))
        made.setdefault(name, []).append(table.append_column(PART, number))


@dataclass(frozen=True, slots=True)
class _Part:
    """One part: its number, its records, ascending, and what the method's stages read of it. Within a part records have numbers
    of their own."""

    number: int
    rows: Ints
    read: Read


class _Cache:
    """The columns of the records, each read once for all parts."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._columns: dict[str, pa.Table] = {}

    def read(self, table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
        """As the function that it was made of."""
        if table != "records" or columns is None or where is not None:
            return self._read(table, columns, where=where)
        for name in columns:
            if name not in self._columns:
                self._columns[name] = self._read("records", [name]).combine_chunks()
        return pa.table({name: self._columns[name].column(0) for name in columns})

    def within(self, rows: Ints, tables: Mapping[str, pa.Table]) -> Read:
        """What a part reads: its records, and its share of the tables."""
        places = pa.array(rows)

        def read(table: str, columns: Sequence[str] | None, *, where: tuple[str, str] | None = None) -> pa.Table:
            if table == "records":
                needed = columns if columns is None else needed_for(columns, where)
                return select_cells(self.read(table, needed).take(places), columns, where)
            return select_cells(tables[table], columns, where)

        return read


def _rows_of(parts: Ints) -> list[Ints]:
    """The records of each part, ascending."""
    order = np.argsort(parts, kind="stable")
    return np.split(order, np.searchsorted(parts[order], np.arange(1, int(parts.max()) + 1)))


def _renumber(table: pa.Table, rows: Ints) -> pa.Table:
    """A masked table of these records, ascending, with the numbers that they have among all."""
    numbers = rows[table.column(RECORD).to_numpy()]
    return table.set_column(table.column_names.index(RECORD), RECORD, pa.array(numbers))
