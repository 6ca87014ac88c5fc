"""The table `raw`: records as the source delivered them. Counts leave it freely; cells only column by column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt

from release_pipeline.errors import StoreError
from release_pipeline.mechanisms.basis.dates import Unit
from release_pipeline.policy.file.derivations import (
    Bands,
    Between,
    Derived,
    Difference,
    Limit,
    Merge,
    PeriodOf,
    Sum,
    order_derivations,
)
from release_pipeline.policy.kinds.base import number_of_code
from release_pipeline.store.database import (
    WITH_MACROS,
    Applied,
    Identifier,
    Qualified,
    Subquery,
    read_batches,
    source_errors,
    statement,
)

if TYPE_CHECKING:
    import pyarrow as pa  # a large library, and `check` does without


_NUMERIC = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*)")
_WHOLE = re.compile(r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER")
_TOGETHER = 1 << 18  # persons that are read together
_BLOCK = 64  # bytes that SHA-256 takes at once: as in HMAC, a secret block comes first and is the key
_ALL = 1 << 62  # beyond the number of any row
GROUPED = 18  # bytes per record that DuckDB should have at least for groups of different entries
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
        """`table`: another table, where a row represents as many records as its column `times` says. `memory`: the bytes that
        DuckDB may take. Where that is little, groupings by all different entries are done in parts, since DuckDB could spill only
        a part of the records' hashes to disk."""
        self._connection = connection
        self._name = name
        self._table: dict[str, Identifier] = {"table": table, "times": times}
        self._memory = memory
        self._rows = 0, _ALL
        with source_errors(name):
            create_macros(connection)
            self.kinds, self._whole = self._look()

    def _look(self) -> tuple[dict[str, str], set[str]]:
        """Return the columns, and which of them have whole numbers."""
        raw = self._connection.table(str(self._table["table"]))
        types = {column: str(kind) for column, kind in zip(raw.columns, raw.types, strict=True)}
        whole = {column for column, kind in types.items() if _WHOLE.fullmatch(kind)}
        return {column: _kind(kind) for column, kind in types.items()}, whole

    def between(self, first: int, beyond: int) -> RawTable:
        """Return a table with the columns of only these rows; counts stay those of all."""
        part = copy(self)
        part._rows = first, beyond
        return part

    def count_records(self) -> int:
        """Return how many records there are."""
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
        """Return counts of records: missing, coded (entries that are no value), not_a_number, not_finite, below, above; and of
        the values that would be masked (filled, clamped, on the grid) different and most_frequent, its number of records. With
        `unit` of moments, in whole units from the beginning of 1970."""
        kind = self.kinds[column]
        missing = Applied(f"missing_of_{kind}" if kind in _ENTRY else "missing_of_other", column)
        names = self._table | {"number": self._read_number(column, unit), "entry": self.entry_of(column), "missing": missing}
        values = {"low": low, "high": high, "step": step, "fill": fill, "codes": list(codes), "texts": list(texts)}
        counts = [self._counts("facts/count_numbers", names, {**values, **part}) for part in self._parts()]
        repeats = {
            "most_frequent": max(part["most_frequent"] for part in counts),
            "different": sum(part["different"] for part in counts),
        }
        return counts[0] | repeats

    def count_categories(self, column: str, declared: Sequence[str], *, filled: str | None = None) -> dict[str, int]:
        """Return counts of records: missing, undeclared; and different, with `filled` in place of what is missing."""
        names = self._table | {"written": self._written(column), "entry": self.entry(column)}
        return self._counts("facts/count_categories", names, {"declared": list(declared), "filled": filled})

    def count_entries(self, column: str, covers: Callable[[str], bool], *, filled: str | None = None) -> dict[str, int]:
        """Return counts: missing; uncovered, the records whose entry is not in `covers`, and uncovered_entries, how many entries
        those are; and different, with `filled` in place of what is missing."""
        text = statement("stages/read_entries", written=self._written(column), entry=self.entry(column), **self._table)
        with source_errors(self._name):
            table = self._connection.sql(text).to_arrow_table()
        entries = dict(zip(table.column("entry").to_pylist(), table.column("records").to_pylist(), strict=True))
        missing = entries.pop(None, 0)
        unknown = [records for entry, records in entries.items() if not covers(entry)]
        different = len(entries) + (missing > 0 and filled is not None and filled not in entries)
        return {"missing": missing, "uncovered": sum(unknown), "uncovered_entries": len(unknown), "different": different}

    def count_other_texts(self, column: str, pattern: str) -> dict[str, int]:
        """Return counts of records: missing, and undeclared: entries that do not have the form of `pattern`."""
        names = {"column": column, "entry": self.entry(column)}
        return self._counts("facts/count_other_texts", names, {"pattern": pattern})

    def count_unreadable(self, column: str, *, read_as: Literal["numbers", "dates"], codes: Sequence[str]) -> int:
        """Return how many records have an entry that is neither a number (a date) nor one of the codes."""
        names = {
            "entry": self.entry_of(column),
            "read": self.number_of(column) if read_as == "numbers" else self.instant_of(column),
        }
        return self._counts("facts/count_unreadable", names, {"codes": list(codes)})["unreadable"]

    def count_unlisted(self, column: str, entries: Sequence[str], *, codes: Sequence[str]) -> int:
        """Return how many records have an entry that is neither listed nor one of the codes."""
        values = {"entries": list(entries), "codes": list(codes)}
        return self._counts("facts/count_unlisted", {"entry": self.entry_of(column)}, values)["unlisted"]

    def numbers(self, column: str, *, unit: Unit | None = None) -> npt.NDArray[np.float64]:
        """Return one numeric column (records,) in source order; NaN where missing. With `unit` one of moments, in whole units
        from the beginning of 1970."""
        return self._column("stages/read_numbers", number=self._read_number(column, unit)).to_numpy()

    def categories(self, column: str) -> pa.ChunkedArray:
        """Return one categorical column in source order, as text."""
        return self._column("stages/read_categories", column=column, entry=self.entry(column))

    def persons(self, column: str, key: bytes) -> Iterator[pa.Array]:
        """Yield the person of each record that has one, as hashes under a key, many at a time."""
        self._prepare_persons(column)
        values = {"key": key.ljust(_BLOCK, b"\0")}
        with source_errors(self._name):
            found = self._connection.sql(statement("stages/read_persons", person=self._person_of(column)), params=values)
            yield from (batch.column(0) for batch in read_batches(found.to_arrow_reader(_TOGETHER)))

    def _parts(self) -> list[dict[str, int]]:
        """Return the parts of what is grouped by all different entries: one, unless DuckDB has too little memory for all."""
        rows = 0 if self._memory is None else self._connection.table(str(self._table["table"])).shape[0]
        parts = max(-(-rows * GROUPED // (self._memory or 1)), 1)
        return [{"part": part, "parts": parts} for part in range(parts)]

    def _prepare_persons(self, column: str) -> None:
        """Load the forms by which `person_of` reads letters beyond ASCII, where there are any: they take a while to load."""
        if self.kinds[column] == "number":
            return
        if self._counts("facts/count_beyond_ascii", {"column": column, "entry": self.entry(column)}, {})["beyond"]:
            learn_forms(self._connection)

    def _person_of(self, column: str) -> Applied:
        """Return the column, read as the person of each record. A whole number is written in only one way."""
        entry = self.entry_of(column)
        return entry if column in self._whole else Applied("person_of", entry)

    def _written(self, column: str) -> Identifier:
        """Return an expression that is equal where the column is: of texts and numbers the column, but two intervals that are
        written differently may be equal."""
        return column if self.kinds[column] in _ENTRY else self.entry_of(column)

    def number(self, column: str) -> str:
        """Return the macro that reads this column as a number."""
        return "number_of_text" if self.kinds[column] == "text" else "number_of_number"

    def entry(self, column: str) -> str:
        """Return the macro that reads this column as a text entry."""
        return _ENTRY.get(self.kinds[column], "entry_of_other")

    def entry_of(self, column: str) -> Applied:
        """Return the column, read as text entries."""
        return Applied(self.entry(column), column)

    def number_of(self, column: str) -> Applied:
        """Return its number; for other types, the number in its text."""
        return (
            Applied("number_of_number", column) if self.kinds[column] == "number" else self._from_text("number_of_text", column)
        )

    def instant_of(self, column: str) -> Applied:
        """Return the column, read as dates."""
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
    """Return the letters that NFKC replaces by others, as full-width ones, and their replacements. None is beyond these planes;
    NFC knows those with only a canonical form."""
    letters = (chr(code) for code in range(0x80, 0x20000) if unicodedata.decomposition(chr(code)))
    forms = {letter: unicodedata.normalize("NFKD", letter) for letter in letters}
    return {letter: form for letter, form in forms.items() if form != unicodedata.normalize("NFD", letter)}


def learn_forms(connection: duckdb.DuckDBPyConnection) -> None:
    """Load the forms that `person_of` needs for letters beyond ASCII; without them it refuses such letters."""
    forms = _list_compatible_forms()
    values = {"letters": "".join(forms), "forms": "\x1f".join(forms.values())}
    connection.execute(statement("schema/create_compatible_letters"), {"letters": _write_class(forms)})
    connection.execute(statement("schema/create_compatible_forms"), values)


def _write_class(letters: Iterable[str]) -> str:
    """Return a regular expression that matches each of these letters.

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
    """Create the rules by which this connection reads numbers, moments, entries and persons, unless it has them."""
    if connection in WITH_MACROS:  # making them takes longer than most uses
        return
    connection.execute(statement("schema/use_utc"))
    for macro in _MACROS:
        connection.execute(statement(f"schema/create_{macro}"))
    WITH_MACROS.add(connection)


def is_time(kind: str) -> bool:
    """Return whether columns of this kind have dates or moments."""
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def entry_macro(type_name: str) -> str:
    """Return the macro that reads a column of this DuckDB type as a text entry."""
    return _ENTRY.get(_kind(type_name), "entry_of_other")


def _kind(type_name: str) -> str:
    if type_name == "VARCHAR":
        return "text"
    return "number" if _NUMERIC.fullmatch(type_name) else type_name


# Loads records of any source into the table `raw`.


Columns: TypeAlias = Mapping[str, str]  # the name wanted -> the name in the source
ReleaseFilter: TypeAlias = tuple[str, str]  # the column of the source, and the text that it must have


class OfServer:
    """The common parts of sources on a server: only reading one shows whether it was changed."""

    __slots__ = ()

    @property
    def stamp(self) -> str:
        """See `SourceReader`."""
        return ""

    @property
    def written(self) -> float | None:
        """See `SourceReader`."""
        return None


def list_columns(columns: Columns, release: ReleaseFilter | None) -> list[str]:
    """Return the columns of the source that are read, including the one that identifies releases."""
    return list(dict.fromkeys([*columns.values(), *([release[0]] if release is not None else [])]))


def select_columns(table: Qualified | Subquery, columns: Columns, release: ReleaseFilter | None) -> str:
    """Return the statement that reads them from a database."""
    return statement("stages/select_source", columns=list_columns(columns, release), table=table)


def create_raw(
    relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None, *, in_any_order: bool = False
) -> None:
    """Create the table `raw` from some columns of a relation; the release column is compared as a text entry, as it is counted.
    Records that come `in_any_order` are sorted: equal ones are the same whichever comes first."""
    chosen = choose_columns(relation, columns, release)
    if in_any_order:
        chosen = chosen.sort(*(duckdb.ColumnExpression(name) for name in columns))
    chosen.create("raw")


def append_raw(relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None) -> None:
    """Append more records of the same kind to `raw`."""
    choose_columns(relation, columns, release).insert_into("raw")


def choose_columns(relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None) -> duckdb.DuckDBPyRelation:
    """Return some columns of a relation, of the records of one release."""
    if release is not None:
        kind = str(dict(zip(relation.columns, relation.types, strict=True))[release[0]])
        entry = duckdb.FunctionExpression(entry_macro(kind), duckdb.ColumnExpression(release[0]))
        relation = relation.filter(entry == duckdb.ConstantExpression(release[1]))
    return relation.select(*(duckdb.ColumnExpression(there).alias(here) for here, there in columns.items()))


# Derived columns of the table `raw`: made once it is loaded, so that every reader finds them next to the delivered ones.


def derive_columns(connection: duckdb.DuckDBPyConnection, source: str, derive: Mapping[str, Derived]) -> None:
    """Add every derived column whose inputs exist; the check of the header reports absent ones."""
    for name in order_derivations(derive):
        table, how = RawTable(connection, source), derive[name]
        if all(column in table.kinds for column in how.inputs):
            text, values = _make(table, name, how)
            with source_errors(source):
                connection.execute(text, values)


def _make(table: RawTable, name: str, how: Derived) -> tuple[str, dict[str, Any]]:
    names: dict[str, Identifier]
    numbers = [table.number_of(column) for column in how.inputs] if how.reads == "number" else []
    codes = [float(code) for code in map(number_of_code, how.codes) if not isinstance(code, str)]
    match how:
        case Bands():
            values = {"codes": codes, "edges": [float(edge) for edge in how.at], "labels": list(how.outputs)}
            return statement("derive/create_bands", number=numbers[0], derived=name), values
        case Limit():
            ends = {side: None if end is None else float(end) for side, end in (("bottom", how.bottom), ("top", how.top))}
            return statement("derive/create_limit", number=numbers[0], derived=name), {"codes": codes, **ends}
        case Sum():
            return statement("derive/create_sum", numbers=numbers, derived=name), {"codes": codes}
        case Difference():
            return statement("derive/create_difference", numbers=numbers, derived=name), {"codes": codes}
        case Between():
            entries, instants = ([read(column) for column in how.between] for read in (table.entry_of, table.instant_of))
            names = {"first": instants[0], "second": instants[1], "entry": entries[0], "other": entries[1]}
            return statement("derive/create_between", **names, derived=name), {"codes": list(how.codes), "unit": how.unit}
        case Merge():
            entries, groups = list(how.groups), list(how.groups.values())
            other = None if how.other is None else str(how.other)
            values = {"codes": list(how.codes), "entries": entries, "groups": groups, "other": other}
            return statement("derive/create_merge", entry=table.entry_of(how.merge), derived=name), values
        case PeriodOf():
            names = {"entry": table.entry_of(how.period), "instant": table.instant_of(how.period)}
            return statement("derive/create_period", **names, derived=name), {"codes": list(how.codes), "every": how.every}
        case _:
            raise TypeError(f"nothing makes a column by {type(how).__name__}")


def count_unread(table: RawTable, derive: Mapping[str, Derived]) -> dict[str, dict[str, int]]:
    """Return how many records have an unreadable entry in an input, by the derived column and the input."""
    found: dict[str, dict[str, int]] = {}
    for name, how in derive.items():
        found[name] = {column: _count(table, how, column) for column in how.inputs if column in table.kinds}
    return found


def _count(table: RawTable, how: Derived, column: str) -> int:
    if isinstance(how, Merge):
        listed = [str(entry) for entries in how.into.values() for entry in entries]
        return 0 if how.other is not None else table.count_unlisted(column, listed, codes=how.codes)
    return table.count_unreadable(column, read_as="dates" if how.reads == "date" else "numbers", codes=how.codes)
