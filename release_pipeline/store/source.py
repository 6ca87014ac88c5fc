"""The doors to confidential sources: CSV and Parquet files, DuckDB tables, Postgres through ADBC.

Each tells its header without reading a record, and loads some of its columns into a DuckDB table `raw`, streaming.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.policy.scalars import canonical_name
from release_pipeline.policy.sections import Source
from release_pipeline.store.connections import open_delivered, open_memory, source_errors
from release_pipeline.store.raw import RawTable, create_macros, entry_macro
from release_pipeline.store.sql import Qualified, statement

_DELIMITERS = (",", ";", "\t", "|")
_HEADER_BYTES = 1 << 20
LONGEST_NAME = 200

Columns = Mapping[str, str]  # the name wanted -> the name in the source
ReleaseFilter = tuple[str, str]  # the column of the source, and the text that it must have


class SourceDoor(Protocol):
    """A readable source."""

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    @property
    def header(self) -> tuple[str, ...]:
        """The columns' names, in order, as written."""
        ...

    @property
    def stamp(self) -> str:
        """Changes when what is delivered changes; empty where only reading it tells."""
        ...

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """Create the table `raw` with these columns of the records of one release (of all: None), in source order."""
        ...


@dataclass(frozen=True, slots=True)
class FileSource:
    """A CSV or Parquet file."""

    path: Path
    format: str
    header: tuple[str, ...]
    delimiter: str = ","
    said: str = ""

    @property
    def name(self) -> str:
        """The path; of one with ${NAME}, as it is declared."""
        return self.said or str(self.path)

    @property
    def stamp(self) -> str:
        """See `SourceDoor`."""
        return _stamp(self.path)

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceDoor`."""
        with _as_declared(self.path, self.said), source_errors(self.path):
            _create_raw(self._scan(into), columns, release)

    def _scan(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        if self.format == "parquet":
            return connection.read_parquet(_literal(self.path), hive_partitioning=False)
        return connection.read_csv(
            _literal(self.path),
            header=True,
            delimiter=self.delimiter,
            quotechar='"',
            escapechar='"',
            columns=dict.fromkeys(self.header, "VARCHAR"),
            auto_detect=False,
            strict_mode=True,
            hive_partitioning=False,
        )


@dataclass(frozen=True, slots=True)
class DuckdbSource:
    """A table of another DuckDB file, opened read-only."""

    path: Path
    table: str
    header: tuple[str, ...]
    said: str = ""

    @property
    def name(self) -> str:
        """The path and the table."""
        return f"{self.said or self.path} table {self.table}"

    @property
    def stamp(self) -> str:
        """See `SourceDoor`."""
        return _stamp(self.path)

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceDoor`."""
        with _as_declared(self.path, self.said), open_delivered(self.path) as connection:
            reader = connection.sql(_selection(self.table, columns, release)).to_arrow_reader()
            _create_raw(into.from_arrow(reader), columns, release)


@dataclass(frozen=True, slots=True)
class PostgresSource:
    """A table in Postgres, read through ADBC. The address may hold a password: it is in no message."""

    address: str
    table: str
    header: tuple[str, ...]

    @property
    def name(self) -> str:
        """The table."""
        return f"Postgres table {self.table}"

    @property
    def stamp(self) -> str:
        """See `SourceDoor`."""
        return ""

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceDoor`."""
        with source_errors(self.name), _postgres(self.address, self.table) as cursor:
            cursor.execute(_selection(self.table, columns, release))
            _create_raw(into.from_arrow(cursor.fetch_record_batch()), columns, release)


def _stamp(path: Path) -> str:
    with source_errors(path):
        known = path.stat()
    return f"{known.st_size} {known.st_mtime_ns} {known.st_ino}"


def find_source(declared: Source, *, folder: Path, values: Mapping[str, str], expected: frozenset[str]) -> SourceDoor:
    """The door to the source that a policy declares.

    Paths are taken from `folder`; `${NAME}` in path or address is replaced from `values` (the environment). Of a CSV's possible
    delimiters, the one that finds `expected` names is used.
    """
    if declared.postgres is not None and declared.table is not None:
        return _find_postgres(expand(declared.postgres, values), declared.table)
    written = declared.path or ""
    path = folder / expand(written, values)
    said = written if "${" in written else ""
    with _as_declared(path, said):
        source = find_file(path, expected=expected) if declared.table is None else _find_duckdb(path, declared.table)
    return replace(source, said=said)


@contextmanager
def _as_declared(path: Path, said: str) -> Generator[None]:
    """Errors name a file as the policy does where ${NAME} stands in it: what the environment has may be a secret."""
    try:
        yield
    except ReleasePipelineError as error:
        if said:
            error.where = error.where.replace(str(path), said)
        raise


def find_file(path: Path, *, expected: frozenset[str]) -> FileSource:
    """The CSV or Parquet file at `path`, its format told by its ending."""
    _check_file(path)
    if path.suffix.lower() not in (".csv", ".tsv", ".parquet"):
        raise SourceError("the file is neither .csv nor .parquet.", where=str(path), remedy="Convert or rename it.")
    try:
        if path.suffix.lower() == ".parquet":
            return FileSource(path, "parquet", _parquet_header(path))
        return _csv_header(path, expected)
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(path)) from None


def expand(text: str, values: Mapping[str, str]) -> str:
    """`text` with every ${NAME} replaced; a name without a value means that the source is missing."""

    def look_up(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise SourceError(
                f"the source is missing: {match[1]} is not set.", remedy=f"Set the environment variable {match[1]}."
            )
        return values[match[1]]

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", look_up, text)


@contextmanager
def open_raw(source: SourceDoor, columns: Columns, *, release: ReleaseFilter | None = None) -> Generator[RawTable]:
    """Some columns of a source, loaded in memory and never spilled to disk; for `mask`, which keeps nothing."""
    with open_memory() as connection:
        yield load_raw(connection, source, columns, release=release)


def load_raw(
    connection: duckdb.DuckDBPyConnection, source: SourceDoor, columns: Columns, *, release: ReleaseFilter | None = None
) -> RawTable:
    """Create the table `raw` in this database from some columns of a source."""
    with source_errors(source.name):
        create_macros(connection)
    source.load(connection, columns, release)
    return RawTable(connection, source.name)


def _find_postgres(address: str, table: str) -> PostgresSource:
    with _postgres(address, table) as cursor:
        cursor.execute(statement("stages/select_no_records", table=Qualified(table)))
        return PostgresSource(address, table, tuple(cursor.fetch_record_batch().schema.names))


def _find_duckdb(path: Path, table: str) -> DuckdbSource:
    _check_file(path)
    with open_delivered(path) as connection:
        return DuckdbSource(
            path, table, tuple(connection.sql(statement("stages/select_no_records", table=Qualified(table))).columns)
        )


def _literal(path: Path) -> str:
    """The path for DuckDB, which would take *, ? and [ for a pattern and read other files, and ~ for a home."""
    return re.sub(r"([*?[])", r"[\1]", str(path.absolute()))


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():
            raise SourceError("this is a directory, not a file.", where=str(path), remedy="Name the file in it.")
        if path.stat().st_size == 0:
            raise SourceError("the file is empty.", where=str(path), remedy="Deliver it again.")
    except FileNotFoundError:
        raise SourceError("there is no such file.", where=str(path), remedy="Check the path.") from None
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(path)) from None


def _selection(table: str, columns: Columns, release: ReleaseFilter | None) -> str:
    names = [*columns.values(), *([release[0]] if release is not None else [])]
    return statement("stages/select_source", columns=list(dict.fromkeys(names)), table=Qualified(table))


def _create_raw(relation: duckdb.DuckDBPyRelation, columns: Columns, release: ReleaseFilter | None) -> None:
    """The table `raw` from some columns of a relation; the release column is compared as a text entry, as it is counted."""
    if release is not None:
        kind = str(dict(zip(relation.columns, relation.types, strict=True))[release[0]])
        entry = duckdb.FunctionExpression(entry_macro(kind), duckdb.ColumnExpression(release[0]))
        relation = relation.filter(entry == duckdb.ConstantExpression(release[1]))
    relation.select(*(duckdb.ColumnExpression(there).alias(here) for here, there in columns.items())).create("raw")


@contextmanager
def _postgres(address: str, table: str) -> Generator[Any]:
    """A cursor on the server. ADBC's exceptions may quote the address and cells: they end here."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SourceError(
            "Postgres sources need adbc-driver-postgresql.", remedy="pip install 'release-pipeline[postgres]'"
        ) from None
    name = f"Postgres table {table}"
    try:
        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            yield cursor
    except (Error, OSError):
        raise SourceError(
            "the server or the table cannot be read.", where=name, remedy="Check address, rights and table."
        ) from None


def _parquet_header(path: Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    try:
        return tuple(pq.read_schema(path).names)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise SourceError(
            "the file is no readable Parquet; it may be truncated.", where=str(path), remedy="Deliver it again."
        ) from None


def _csv_header(path: Path, expected: frozenset[str]) -> FileSource:
    with path.open("rb") as file:
        start = file.read(_HEADER_BYTES)
    complete = start if len(start) < _HEADER_BYTES else start[: start.rfind(b"\n") + 1]
    text = complete.decode("utf-8-sig", errors="replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in complete:
        raise SourceError("the file is not UTF-8 text.", where=str(path), remedy="Convert it to UTF-8.")
    if "\0" in text:
        raise SourceError("the file is not text.", where=str(path), remedy="Deliver it as CSV or Parquet.")
    candidates: list[tuple[str, tuple[str, ...]]] = []
    for delimiter in _DELIMITERS:
        try:
            first = next(csv.reader(io.StringIO(text), delimiter=delimiter, strict=True), list[str]())
        except csv.Error:
            continue
        candidates.append((delimiter, tuple(name.strip() for name in first)))
    if not any(any(header) for _, header in candidates):
        raise SourceError("the first line has no column names.", where=str(path), remedy="Deliver it with a header.")
    delimiter, header = max(candidates, key=lambda one: (len(expected.intersection(map(canonical_name, one[1]))), len(one[1])))
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in header):
        raise SourceError(
            "a column name has several lines or more than 200 characters; a quote in the first line may not end.",
            where=str(path),
            remedy="Repair the header.",
        )
    return FileSource(path, "csv", header, delimiter)
