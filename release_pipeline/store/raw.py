"""The table `raw`: what a source delivered, as it was delivered. Counts leave it freely; cells only column by column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import numpy as np
import numpy.typing as npt

from release_pipeline.errors import StoreError
from release_pipeline.privacy.dates import Unit
from release_pipeline.store.connections import read_batches, source_errors
from release_pipeline.store.sql import Applied, Identifier, statement

if TYPE_CHECKING:
    import pyarrow as pa  # a large library, and `check` does without

_NUMERIC = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*)")
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER")
_TOGETHER = 1 << 18  # persons that are read together
_ALL = 1 << 62  # beyond the number of any row
GROUPED = 18  # bytes of a record that DuckDB should have at least for groups of different entries
_MACROS = (
    "number_of_text",
    "number_of_number",
    "missing_of_text",
    "missing_of_number",
    "missing_of_other",
    "entry_of_text",
    "entry_of_number",
    "entry_of_other",
    "person_of",
    "instant_of",
    "instant_of_time",
    "day_of_instant",
    "hour_of_instant",
    "minute_of_instant",
    "second_of_instant",
    "value_of",
    "sum_of",
)

_ENTRY = {"text": "entry_of_text", "number": "entry_of_number"}


class RawTable:
    """The table `raw` of a database, read as numbers or as text entries by declared rules (sql/schema/create_*_of_*.sql)."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        *,
        table: str = "raw",
        times: Identifier = 1,
        memory: int | None = None,
    ) -> None:
        """`table`: another, where a row stands for so many records as its column `times` has. `memory`: the bytes that DuckDB may
        take. What it groups by all different entries is done in parts where that is little, since it could go on on disk with a
        part of the records' hashes alone."""
        self._connection = connection
        self._name = name
        self._table: dict[str, Identifier] = {"table": table, "times": times}
        self._memory = memory
        self._rows = 0, _ALL
        with source_errors(name):
            create_macros(connection)
            self.kinds, self._whole = self._look()

    def _look(self) -> tuple[dict[str, str], set[str]]:
        """The columns, and which of them have whole numbers."""
        raw = self._connection.table(str(self._table["table"]))
        types = {column: str(kind) for column, kind in zip(raw.columns, raw.types, strict=True)}
        whole = {column for column, kind in types.items() if _WHOLE.fullmatch(kind)}
        return {column: _kind(kind) for column, kind in types.items()}, whole

    def between(self, first: int, beyond: int) -> RawTable:
        """The same, with the columns of these rows alone; counts stay those of all."""
        part = copy(self)
        part._rows = first, beyond
        return part

    def count_records(self) -> int:
        """How many records there are."""
        return self._counts("facts/count_records", self._table, {})["records"]

    def count_numbers(
        self,
        column: str,
        *,
        low: float,
        high: float,
        step: float,
        fill: float | None,
        codes: Sequence[float] = (),
        texts: Sequence[str] = (),
        unit: Unit | None = None,
    ) -> dict[str, int]:
        """missing, coded (entries that are no value), not_a_number, not_finite, below, above; and of what would be masked
        (filled, clamped, on the grid) different and most_frequent, its number of records. With `unit` of moments, in whole units
        from the beginning of 1970."""
        kind = self.kinds[column]
        missing = Applied(f"missing_of_{kind}" if kind in _ENTRY else "missing_of_other", column)
        names = self._table | {"number": self._read_number(column, unit), "entry": self.entry_of(column), "missing": missing}
        values = {"low": low, "high": high, "step": step, "fill": fill, "codes": list(codes), "texts": list(texts)}
        found = [self._counts("facts/count_numbers", names, {**values, **part}) for part in self._parts()]
        repeats = {
            "most_frequent": max(part["most_frequent"] for part in found),
            "different": sum(part["different"] for part in found),
        }
        return found[0] | repeats

    def count_categories(self, column: str, declared: Sequence[str], *, filled: str | None = None) -> dict[str, int]:
        """missing, undeclared; and different, with `filled` in the place of what is missing."""
        names = self._table | {"written": self._written(column), "entry": self.entry(column)}
        return self._counts("facts/count_categories", names, {"declared": list(declared), "filled": filled})

    def count_entries(self, column: str, covers: Callable[[str], bool], *, filled: str | None = None) -> dict[str, int]:
        """missing; uncovered, the records whose entry `covers` does not know, and uncovered_entries, how many entries those are;
        and different, with `filled` in the place of what is missing."""
        text = statement("stages/read_entries", written=self._written(column), entry=self.entry(column), **self._table)
        with source_errors(self._name):
            table = self._connection.sql(text).to_arrow_table()
        entries = dict(zip(table.column("entry").to_pylist(), table.column("records").to_pylist(), strict=True))
        missing = entries.pop(None, 0)
        unknown = [records for entry, records in entries.items() if not covers(entry)]
        different = len(entries) + (missing > 0 and filled is not None and filled not in entries)
        return {"missing": missing, "uncovered": sum(unknown), "uncovered_entries": len(unknown), "different": different}

    def count_other_texts(self, column: str, pattern: str) -> dict[str, int]:
        """missing, and undeclared: entries that do not have the form of `pattern`."""
        names = {"column": column, "entry": self.entry(column)}
        return self._counts("facts/count_other_texts", names, {"pattern": pattern})

    def count_persons(self, column: str, *, allowed: int) -> dict[str, int]:
        """missing, persons, too_often (persons with more records than allowed). Of what is counted in parts each is read once."""
        self._prepare_persons(column)
        names, parts = {"person": column if column in self._whole else self._person_of(column)}, self._parts()
        is_view = len(parts) == 1
        with source_errors(self._name):
            self._connection.execute(statement("stages/create_persons_view" if is_view else "stages/create_persons", **names))
            try:
                found = [self._counts("facts/count_persons", {}, {"allowed": allowed, **part}) for part in parts]
            finally:
                with suppress(duckdb.Error):  # an error ends the transaction, and with it the table
                    self._connection.execute(statement("stages/drop_persons_view" if is_view else "stages/drop_persons"))
        return {name: sum(part[name] for part in found) for name in found[0]}

    def count_unreadable(self, column: str, *, read_as: Literal["numbers", "dates"], codes: Sequence[str]) -> int:
        """Records where something stands that is neither a number (a date) nor one of the codes."""
        names = {
            "entry": self.entry_of(column),
            "read": self.number_of(column) if read_as == "numbers" else self.instant_of(column),
        }
        return self._counts("facts/count_unreadable", names, {"codes": list(codes)})["unreadable"]

    def count_unlisted(self, column: str, entries: Sequence[str], *, codes: Sequence[str]) -> int:
        """Records with an entry that is neither listed nor one of the codes."""
        values = {"entries": list(entries), "codes": list(codes)}
        return self._counts("facts/count_unlisted", {"entry": self.entry_of(column)}, values)["unlisted"]

    def numbers(self, column: str, *, unit: Unit | None = None) -> npt.NDArray[np.float64]:
        """One numeric column in source order; NaN where missing. With `unit` one of moments, in whole units from the beginning of
        1970."""
        return self._column("stages/read_numbers", number=self._read_number(column, unit)).to_numpy()

    def categories(self, column: str) -> pa.ChunkedArray:
        """One categorical column in source order, as text."""
        return self._column("stages/read_categories", column=column, entry=self.entry(column))

    def persons(self, column: str, pads: Mapping[str, bytes]) -> Iterator[pa.Array]:
        """Whose record each is, as hashes under the key with these pads, many at a time."""
        self._prepare_persons(column)
        with source_errors(self._name):
            found = self._connection.sql(statement("stages/read_persons", person=self._person_of(column)), params=dict(pads))
            yield from (batch.column(0) for batch in read_batches(found.to_arrow_reader(_TOGETHER)))

    def _parts(self) -> list[dict[str, int]]:
        """The parts of what is grouped by all different entries: one, unless DuckDB has too little memory for all."""
        rows = 0 if self._memory is None else self._connection.table(str(self._table["table"])).shape[0]
        parts = max(-(-rows * GROUPED // (self._memory or 1)), 1)
        return [{"part": part, "parts": parts} for part in range(parts)]

    def _prepare_persons(self, column: str) -> None:
        """The forms by which `person_of` reads letters beyond ASCII, where there are any: they take a while to load."""
        if self.kinds[column] == "number":
            return
        if self._counts("facts/count_beyond_ascii", {"column": column, "entry": self.entry(column)}, {})["beyond"]:
            learn_forms(self._connection)

    def _person_of(self, column: str) -> Applied:
        """The column, read as whose record it is. A whole number has one way alone to be written."""
        entry = self.entry_of(column)
        return entry if column in self._whole else Applied("person_of", entry)

    def _written(self, column: str) -> Identifier:
        """What is the same where the column has the same: of texts and numbers the column, but two intervals that are written
        otherwise may be equal."""
        return column if self.kinds[column] in _ENTRY else self.entry_of(column)

    def number(self, column: str) -> str:
        """The macro that reads this column as a number."""
        return "number_of_text" if self.kinds[column] == "text" else "number_of_number"

    def entry(self, column: str) -> str:
        """The macro that reads this column as a text entry."""
        return _ENTRY.get(self.kinds[column], "entry_of_other")

    def entry_of(self, column: str) -> Applied:
        """The column, read as text entries."""
        return Applied(self.entry(column), column)

    def number_of(self, column: str) -> Applied:
        """Its number; of what is neither text nor number, what its text says."""
        return (
            Applied("number_of_number", column) if self.kinds[column] == "number" else self._from_text("number_of_text", column)
        )

    def instant_of(self, column: str) -> Applied:
        """The column, read as dates."""
        return Applied("instant_of_time", column) if is_time(self.kinds[column]) else self._from_text("instant_of", column)

    def _read_number(self, column: str, unit: Unit | None) -> Applied:
        return Applied(self.number(column), column) if unit is None else Applied(f"{unit}_of_instant", self.instant_of(column))

    def _from_text(self, macro: str, column: str) -> Applied:
        return Applied(macro, self.entry_of(column))

    def _column(self, name: str, **names: Identifier) -> pa.ChunkedArray:
        with source_errors(self._name):
            first, beyond = self._rows
            text = statement(name, **names, table=self._table["table"])
            found = self._connection.sql(text, params={"first": first, "beyond": beyond}).to_arrow_table().column("value")
        if beyond < _ALL and len(found) != beyond - first:  # rows have other numbers in the transaction that makes their table
            raise StoreError("a part of the records does not have the rows that it should have.", where=self._name)
        return found

    def _counts(
        self, name: str, names: Mapping[str, Identifier | Sequence[Identifier]], values: Mapping[str, Any]
    ) -> dict[str, int]:
        with source_errors(self._name):
            result = self._connection.execute(statement(name, **names), dict(values))
            labels = [str(item[0]) for item in result.description or ()]
            [row] = result.fetchall()
        return dict(zip(labels, (int(count) for count in row), strict=True))


@lru_cache
def _list_compatible_forms() -> dict[str, str]:
    """The letters that NFKC takes for others, as full-width ones, and for which. None stands beyond these planes; of those with
    a canonical form alone NFC knows."""
    letters = (chr(code) for code in range(0x80, 0x20000) if unicodedata.decomposition(chr(code)))
    forms = {letter: unicodedata.normalize("NFKD", letter) for letter in letters}
    return {letter: form for letter, form in forms.items() if form != unicodedata.normalize("NFD", letter)}


def learn_forms(connection: duckdb.DuckDBPyConnection) -> None:
    """What `person_of` needs for letters beyond ASCII; without it it refuses them."""
    forms = _list_compatible_forms()
    values = {"letters": "".join(forms), "forms": "\x1f".join(forms.values())}
    connection.execute(statement("schema/create_compatible_letters"), {"letters": _write_class(forms)})
    connection.execute(statement("schema/create_compatible_forms"), values)


def _write_class(letters: Iterable[str]) -> str:
    """A regular expression that any of these letters meets.

    >>> _write_class("cabz")
    '[\\\\x{61}-\\\\x{63}\\\\x{7A}-\\\\x{7A}]'
    """
    runs: list[list[int]] = []
    for code in sorted(map(ord, letters)):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "[" + "".join(f"\\x{{{first:X}}}-\\x{{{last:X}}}" for first, last in runs) + "]"


def create_macros(connection: duckdb.DuckDBPyConnection) -> None:
    """The rules by which this connection reads numbers, moments, entries and persons."""
    connection.execute(statement("schema/use_utc"))
    for macro in _MACROS:
        connection.execute(statement(f"schema/create_{macro}"))


def is_time(kind: str) -> bool:
    """Whether columns of this kind have dates or moments."""
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def entry_macro(type_name: str) -> str:
    """The macro that reads a column of this DuckDB type as a text entry."""
    return _ENTRY.get(_kind(type_name), "entry_of_other")


def _kind(type_name: str) -> str:
    if type_name == "VARCHAR":
        return "text"
    return "number" if _NUMERIC.fullmatch(type_name) else type_name
