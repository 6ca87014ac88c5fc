"""The door to a confidential input file: its header, counts about its columns, and one column at a time.

DuckDB's exceptions quote lines of the file, so none of them leaves this module: they become a `SourceError` of our own words,
with at most a line number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.errors import SourceError
from release_pipeline.store.sql import statement

_DELIMITERS = (",", ";", "\t", "|")
_HEADER_BYTES = 1 << 20
_NUMERIC = re.compile(r"(U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL.*)")
_MACROS = ("number_of_text", "number_of_number", "entry_of_text", "entry_of_number", "entry_of_other")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A readable file: its format, and its columns' names in order as written (for CSV: at this delimiter)."""

    path: Path
    format: str
    header: tuple[str, ...]
    delimiter: str = ","


class SourceTable:
    """The needed columns of a source, loaded. Counts leave it freely; cells only through `numbers` and `categories`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, kinds: Mapping[str, str], path: Path) -> None:
        self._connection = connection
        self._path = path
        self.kinds = kinds  # text, number or the name of another type, per column

    def count_records(self) -> int:
        """How many records there are."""
        return self._counts("facts/count_records")["records"]

    def count_numbers(self, column: str, *, low: float, high: float) -> dict[str, int]:
        """missing, not_a_number, not_finite, below, above, most_frequent (its number of records), different."""
        names = {"column": column, "number": self._number(column), "entry": self._entry(column)}
        return self._counts("facts/count_numbers", names, {"low": low, "high": high})

    def count_categories(self, column: str, declared: Sequence[str]) -> dict[str, int]:
        """missing, undeclared, different."""
        names = {"column": column, "entry": self._entry(column)}
        return self._counts("facts/count_categories", names, {"declared": list(declared)})

    def count_persons(self, column: str, *, allowed: int) -> dict[str, int]:
        """missing, persons, too_often (persons with more records than allowed)."""
        names = {"column": column, "entry": self._entry(column)}
        return self._counts("facts/count_persons", names, {"allowed": allowed})

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """One numeric column in source order; NaN where missing."""
        query = statement("stages/read_numbers", column=column, number=self._number(column))
        with _private_errors(self._path):
            table: pa.Table = self._connection.sql(query).to_arrow_table()
        return table.column("value").to_numpy()

    def categories(self, column: str) -> pa.ChunkedArray:
        """One categorical column in source order, as text."""
        query = statement("stages/read_categories", column=column, entry=self._entry(column))
        with _private_errors(self._path):
            return self._connection.sql(query).to_arrow_table().column("value")

    def _number(self, column: str) -> str:
        return "number_of_text" if self.kinds[column] == "text" else "number_of_number"

    def _entry(self, column: str) -> str:
        return {"text": "entry_of_text", "number": "entry_of_number"}.get(self.kinds[column], "entry_of_other")

    def _counts(
        self, name: str, names: Mapping[str, str] | None = None, values: Mapping[str, Any] | None = None
    ) -> dict[str, int]:
        with _private_errors(self._path):
            result = self._connection.execute(statement(name, **(names or {})), dict(values or {}))
            labels = [str(item[0]) for item in result.description or ()]
            [row] = result.fetchall()
        return dict(zip(labels, (int(count) for count in row), strict=True))


def find_source(path: Path, *, expected: frozenset[str]) -> SourceFile:
    """The file at `path`, its format told by its ending; of a CSV's possible delimiters, the one that finds `expected` names."""
    if path.is_dir():
        raise SourceError("this is a directory, not a file.", where=str(path), remedy="Name the CSV or Parquet file in it.")
    if not path.exists():
        raise SourceError("there is no such file.", where=str(path), remedy="Check the path.")
    if path.suffix.lower() not in (".csv", ".tsv", ".parquet"):
        raise SourceError("the file is neither .csv nor .parquet.", where=str(path), remedy="Convert or rename it.")
    try:
        if path.stat().st_size == 0:
            raise SourceError("the file is empty.", where=str(path), remedy="Deliver it again.")
        if path.suffix.lower() == ".parquet":
            return SourceFile(path, "parquet", _parquet_header(path))
        return _csv_header(path, expected)
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(path)) from None


@contextmanager
def open_table(source: SourceFile, columns: Mapping[str, str], *, where: tuple[str, str] | None = None) -> Iterator[SourceTable]:
    """Load some columns of a source: `columns` maps the names wanted to the names in the file.

    `where`, a column of the file and a text, keeps only the records that have it there. In memory, and never spilled to disk.
    """
    with _private_errors(source.path):
        connection = duckdb.connect(
            ":memory:",
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "temp_directory": "",
                "preserve_insertion_order": "true",
            },
        )
    try:
        with _private_errors(source.path):
            for macro in _MACROS:
                connection.execute(statement(f"schema/create_{macro}"))
            relation = _scan(connection, source)
            if where is not None:
                compared = duckdb.ColumnExpression(where[0]).cast("VARCHAR")
                relation = relation.filter(duckdb.FunctionExpression("trim", compared) == duckdb.ConstantExpression(where[1]))
            wanted = [duckdb.ColumnExpression(there).alias(here) for here, there in columns.items()]
            relation.select(*wanted).create("raw")
            loaded = connection.table("raw")
            kinds = {name: _kind(str(kind)) for name, kind in zip(loaded.columns, loaded.types, strict=True)}
        yield SourceTable(connection, kinds, source.path)
    finally:
        connection.close()


def _scan(connection: duckdb.DuckDBPyConnection, source: SourceFile) -> duckdb.DuckDBPyRelation:
    if source.format == "parquet":
        return connection.read_parquet(str(source.path))
    return connection.read_csv(
        str(source.path),
        header=True,
        delimiter=source.delimiter,
        quotechar='"',
        escapechar='"',
        columns=dict.fromkeys(source.header, "VARCHAR"),
        auto_detect=False,
        strict_mode=True,
    )


def _kind(type_name: str) -> str:
    if type_name == "VARCHAR":
        return "text"
    return "number" if _NUMERIC.fullmatch(type_name) else type_name


def _parquet_header(path: Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise SourceError(
            "the file is no readable Parquet; it may be truncated.", where=str(path), remedy="Deliver it again."
        ) from None


def _csv_header(path: Path, expected: frozenset[str]) -> SourceFile:
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    try:
        text = start.decode("utf-8-sig") if len(start) < _HEADER_BYTES else start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError("the file is not UTF-8 text.", where=str(path), remedy="Convert it to UTF-8.") from None
    if "\0" in text:
        raise SourceError("the file is not text.", where=str(path), remedy="Deliver it as CSV or Parquet.")
    candidates: list[tuple[str, tuple[str, ...]]] = []
    for delimiter in _DELIMITERS:
        try:
            first = next(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True), [])
        except csv.Error:
            continue
        candidates.append((delimiter, tuple(name.strip() for name in first)))
    if not candidates or not any(any(header) for _, header in candidates):
        raise SourceError("the first line has no column names.", where=str(path), remedy="Deliver it with a header.")
    delimiter, header = max(candidates, key=lambda one: len(expected.intersection(one[1])))
    return SourceFile(path, "csv", header, delimiter)


@contextmanager
def _private_errors(path: Path) -> Iterator[None]:
    """Turn DuckDB's exceptions, which quote the data, into words of our own with at most a line number."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise SourceError("the table does not fit into memory.", where=str(path), remedy="Use a larger machine.") from None
    except (duckdb.Error, RuntimeError, UnicodeDecodeError, pa.ArrowException) as error:
        line = re.search(r"CSV Error on Line: (\d+)", str(error))
        what = f"line {line[1]} cannot be read: {_csv_fault(str(error))}." if line else "the file cannot be read."
        raise SourceError(what, where=str(path), remedy="Deliver it again, or repair it.") from None


def _csv_fault(text: str) -> str:
    if "Number of Columns" in text:
        return "it has another number of fields than the header"
    if "unterminated quote" in text:
        return "a quoted field does not end"
    if "unicode" in text or "utf-8" in text:
        return "it is not UTF-8 text"
    return "it does not follow the CSV format"
