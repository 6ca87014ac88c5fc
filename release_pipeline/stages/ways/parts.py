"""Random parts of the records, each masked on its own by the policy's method: all of them in one release, or one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.scalars import OURS
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.privacy.partition import draw_parts
from release_pipeline.stages.audit import Streams
from release_pipeline.stages.gates import Gate
from release_pipeline.stages.suppress import encode, group_sizes
from release_pipeline.stages.ways.classes import ClassWay
from release_pipeline.stages.ways.grouping import Ints
from release_pipeline.stages.ways.way import CLASS, RECORD, Contexts, Figures, Grouped, Progress, Read, Suppressed, Way

ERRORS = ("error", "error_low", "error_high")
PART = f"{OURS}_part"  # the part of a record, -1 if it is in none of this release; never released


@dataclass(frozen=True, slots=True)
class Series:
    """One part of a series: the secret that says who is in which, and the number of the part."""

    secret: bytes
    place: int


@dataclass(frozen=True, slots=True)
class PartedWay:
    """The way of a method, gone once for each part with streams of its own. The tables of the parts lie one after the other, and
    `parts` has the part of each record. `series` is needed to make the one part of a release of a series."""

    policy: Policy
    way: Way
    series: Series | None = None
    suppression_reads: ClassVar[tuple[str, ...]] = ("validated", "microaggregated")
    makes: ClassVar[tuple[str, ...]] = ("parts",)

    def expect(self, read: Read, *, secret: bytes, progress: Progress) -> Figures:
        """Of random parts like those of the release, and not those themselves: of one where the release has one."""
        parts = draw_parts(self._count(read), self.policy.parts, noise_stream(secret, "expected parts"))
        if self.policy.publishes_parts:
            parts[parts > 0] = -1
        found: list[tuple[Figures, Ints]] = []
        cached = _Cache(read)
        for rows in _rows_of(parts):
            found.append((self.way.expect(cached.within(rows, {}), secret=secret, progress=progress), rows))
        return self._merge(found, cached)

    def judge(self, expected: Figures) -> list[Gate]:
        """As the method does."""
        return self.way.judge(expected)

    def group(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> Grouped:
        """The tables of the method, part by part, and `parts`."""
        parts = self._draw(self._count(read), secret, context)
        made: dict[str, list[pa.Table]] = {}
        evidence: list[Figures] = []
        facts: list[Mapping[str, Any]] = []
        cached, everybody = _Cache(read), _rows_of(parts)
        for part, rows in enumerate(everybody):
            if len(everybody) > 1:
                progress(f"part {part + 1} of {len(everybody)}")
            done = self.way.group(cached.within(rows, {}), secret=secret, context=(*context, "part", part), progress=progress)
            for name, table in done.tables.items():
                number = pa.array(np.full(table.num_rows, part, dtype=np.int64))
                made.setdefault(name, []).append(table.append_column(PART, number))
            evidence.append(done.evidence)
            facts.append(done.facts)
        tables = {name: pa.concat_tables(list_of) for name, list_of in made.items()}
        tables["parts"] = pa.table({PART: pa.array(parts)})
        return Grouped(tables, _collect(evidence), self._facts(parts, facts))

    def mask(self, read: Read, *, secret: bytes, context: Contexts, progress: Progress) -> pa.Table:
        """The masked records of all parts in one random order: it shows no part."""
        tables: list[pa.Table] = []
        for part in self._each(read):
            done = self.way.mask(part.read, secret=secret, context=(*context, "part", part.number), progress=progress)
            tables.append(part.of_all(done))
        table = pa.concat_tables(tables).combine_chunks()
        order = shuffled_positions(table.num_rows, noise_stream(secret, *context, "shuffle of all parts"))
        return table.take(pa.array(order))

    def suppress(self, read: Read, masked: pa.Table) -> Suppressed:
        """Classes part by part; small groups of kept columns in the table as it leaves."""
        if not isinstance(self.way, ClassWay):
            return self.way.suppress(read, masked)
        part_of = read("parts", None).column(PART).to_numpy()
        own = masked.column(RECORD).to_numpy()
        kept: list[pa.Table] = []
        figures: dict[str, int] = {}
        dropped = 0
        for part in self._each(read):
            mine = np.flatnonzero(part_of[own] == part.number)
            done = self.way.suppress(part.read, part.of_its_own(masked.take(pa.array(mine))))
            whole = part.of_all(done.table)
            left = mine[np.isin(own[mine], whole.column(RECORD).to_numpy())]
            kept.append(whole.append_column(PART, pa.array(left)))
            dropped += done.dropped
            for name, count in done.figures.items():
                figures[name] = figures.get(name, 0) + int(count)
        table = pa.concat_tables(kept).sort_by(PART).drop_columns([PART])  # in the order of the masked table, which is random
        records = table.num_rows + dropped
        codes = encode([table.column(name) for name in self.policy.released_quasi])
        return Suppressed(
            table=table,
            cells=0,
            dropped=dropped,
            share=dropped / records,
            anonymity=int(group_sizes(codes).min()) if table.num_rows else None,
            refusal=self.way.refuse(figures, records),
            figures=figures,
        )

    def audit(self, read: Read, released: pa.Table, *, streams: Streams, progress: Progress) -> dict[str, Any]:
        """As the method does, on all records that may be in this release, with the classes of all parts."""
        rows = np.flatnonzero(read("parts", None).column(PART).to_numpy() >= 0)
        tables: dict[str, pa.Table] = {}
        if isinstance(self.way, ClassWay):
            group = np.full(len(rows), -1, dtype=np.int64)
            for part in self._each(read):
                members = part.read("membership", None).column(CLASS).to_numpy().astype(np.int64)
                group[np.searchsorted(rows, part.rows)] = np.where(members < 0, -1, members + part.classes_before)
            labels = read("labels", None).drop_columns([PART])
            tables = {"membership": pa.table({CLASS: pa.array(group)}), "labels": labels}
        released = _put(released, RECORD, np.searchsorted(rows, released.column(RECORD).to_numpy()))
        return self.way.audit(_Cache(read).within(rows, tables), released, streams=streams, progress=progress)

    def _count(self, read: Read) -> int:
        return read("records", [next(iter(self.policy.noise_columns))]).num_rows

    def _draw(self, slots: int, secret: bytes, context: Contexts) -> Ints:
        """The part of each record; -1 if it is in another release."""
        if not self.policy.publishes_parts:
            return draw_parts(slots, self.policy.parts, noise_stream(secret, *context, "parts"))
        assert self.series is not None, "a part of a series is made with the series' secret"  # noqa: S101  who calls knows
        drawn = draw_parts(slots, self.policy.parts, noise_stream(self.series.secret, "parts of a series"))
        return np.where(drawn == self.series.place, 0, -1)

    def _each(self, read: Read) -> Iterator[_Part]:
        """Each part of this release."""
        cached, before = _Cache(read), 0
        stored = {name: read(name, None) for name in self.way.makes}
        first = {name: table.column(PART).to_numpy() for name, table in stored.items()}  # parts lie one after the other
        for number, rows in enumerate(_rows_of(read("parts", None).column(PART).to_numpy())):
            tables: dict[str, pa.Table] = {}
            for name, table in stored.items():
                begin, end = np.searchsorted(first[name], [number, number + 1]).tolist()
                tables[name] = table.slice(begin, end - begin).drop_columns([PART])
            yield _Part(number, rows, before, cached.within(rows, tables))
            before += tables["labels"].num_rows if "labels" in tables else 0

    def _facts(self, parts: Ints, of_parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """How many records there are to release, and what all parts have in common."""
        common = dict(of_parts[0]) if all(facts == of_parts[0] for facts in of_parts) else {}
        told: dict[str, Any] = {**common, "parts": self.policy.parts}
        if self.series is not None:
            told |= {"part": f"{self.series.place + 1} of {self.policy.parts}", "rows_in": int(np.count_nonzero(parts >= 0))}
        return told

    def _merge(self, found: Sequence[tuple[Figures, Ints]], cached: _Cache) -> Figures:
        """The figures of all records: counts added up, shares and means by the records of each part, and mean squares over the
        variance of all of them."""
        merged: Figures = {}
        total = sum(len(rows) for _, rows in found)
        weights = [len(rows) / total for _, rows in found]
        for name in found[0][0]:
            of_parts = {key: [figures[name][key] for figures, _ in found] for key in found[0][0][name]}
            merged[name] = {key: _combine(key, values, weights) for key, values in of_parts.items() if key not in ERRORS}
            errors = [key for key in ERRORS if key in of_parts]
            if not errors:
                continue
            numbers = cached.read("records", [name]).column(name).to_numpy()
            spread = np.multiply([float(np.var(numbers[rows])) for _, rows in found], weights)
            whole = float(np.var(np.concatenate([numbers[rows] for _, rows in found])))
            for key in errors:  # the range of the whole is at most as wide as those of the parts together
                known = None not in of_parts[key]
                merged[name][key] = (float(np.dot(of_parts[key], spread)) / whole if whole > 0 else 0.0) if known else None
        return merged


@dataclass(frozen=True, slots=True)
class _Part:
    """One part: its number, its records, ascending, how many classes the parts before it have, and what the method's stages read
    of it. Within a part records and classes have numbers of their own."""

    number: int
    rows: Ints
    classes_before: int
    read: Read

    def of_all(self, table: pa.Table) -> pa.Table:
        """A masked table of the part with the numbers that records and classes have among all."""
        table = _put(table, RECORD, self.rows[table.column(RECORD).to_numpy()])
        return self._move_classes(table, self.classes_before)

    def of_its_own(self, table: pa.Table) -> pa.Table:
        """The other way round."""
        table = _put(table, RECORD, np.searchsorted(self.rows, table.column(RECORD).to_numpy()))
        return self._move_classes(table, -self.classes_before)

    def _move_classes(self, table: pa.Table, by: int) -> pa.Table:
        if CLASS not in table.column_names:
            return table
        return _put(table, CLASS, table.column(CLASS).to_numpy().astype(np.int64) + by)


class _Cache:
    """The columns of the records, each read once for all parts."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._columns: dict[str, pa.Table] = {}

    def read(self, table: str, columns: Sequence[str] | None) -> pa.Table:
        """As the function that it was made of."""
        if table != "records" or columns is None:
            return self._read(table, columns)
        for name in columns:
            if name not in self._columns:
                self._columns[name] = self._read("records", [name]).combine_chunks()
        return pa.table({name: self._columns[name].column(0) for name in columns})

    def within(self, rows: Ints, tables: Mapping[str, pa.Table]) -> Read:
        """What a part reads: its records, and its share of the tables."""
        places = pa.array(rows)

        def read(table: str, columns: Sequence[str] | None) -> pa.Table:
            if table == "records":
                return self.read(table, columns).take(places)
            return tables[table] if columns is None else tables[table].select(list(columns))

        return read


def _rows_of(parts: Ints) -> list[Ints]:
    """The records of each part, ascending; those of part -1 are in none."""
    order = np.argsort(parts, kind="stable")
    return np.split(order, np.searchsorted(parts[order], np.arange(int(parts.max()) + 1)))[1:]


def _put(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def _combine(key: str, values: Sequence[Any], weights: Sequence[float]) -> Any:
    if any(value is None for value in values):
        return None
    if all(isinstance(value, int) for value in values):
        return sum(values)
    if all(isinstance(value, list) for value in values):  # shares at atoms: those of all records are the mean by their number
        return np.dot(weights, values).tolist()
    if key == "epsilon_needed":
        return max(values)
    return float(np.dot(values, weights))


def _collect(evidence: Sequence[Figures]) -> Figures:
    """The evidence of all parts: counts added up; of the rest, the largest number or the text that all have."""
    merged: Figures = {}
    for name in evidence[0]:
        merged[name] = {"parts": len(evidence)}
        for key in evidence[0][name]:
            values: list[Any] = [part[name].get(key) for part in evidence]
            if all(isinstance(value, int) and not isinstance(value, bool) for value in values) and key not in ("level", "levels"):
                merged[name][key] = sum(values)
            elif all(isinstance(value, int | float) for value in values):
                merged[name][key] = min(values) if key == "scale_smallest" else max(values)
            elif all(value == values[0] for value in values):
                merged[name][key] = values[0]
    return merged
