"""Readers of confidential sources: CSV, Parquet, Stata, SPSS and SAS files; folders with Parquet files; tables of Delta Lake,
DuckDB, Postgres and Spark, and the result of a query to Postgres.

Each gives its header without reading a record, and loads some of its columns into a DuckDB table `raw`, streaming.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeVar

import duckdb

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.policy.file.derivations import Derived
from release_pipeline.policy.file.sections import Source
from release_pipeline.policy.values.scalars import canonical_name
from release_pipeline.store.database import Qualified, open_delivered, open_memory, source_errors, statement
from release_pipeline.store.delta import LOG, OTHERWISE, DeltaVersion, read_delta
from release_pipeline.store.environment import expand
from release_pipeline.store.raw import Columns, RawTable, ReleaseFilter, create_macros, create_raw, derive_columns, select_columns
from release_pipeline.store.remote import find_postgres
from release_pipeline.store.survey_files import ENDINGS as SURVEYS
from release_pipeline.store.survey_files import SurveySource, changed_at, open_survey, stamp_file

if TYPE_CHECKING:
    import pyarrow as pa

    from release_pipeline.store.spark import SparkAddress


TABLES = (".csv", ".tsv")
_TABLES = {
    "Delta": LOG,
    "Iceberg": "metadata/*.metadata.json*",
    "Hudi": ".hoodie",
    "DuckLake": "ducklake-*.parquet",
}  # their signs
_NONE: Mapping[str, Derived] = {}
_DELIMITERS = (",", ";", "\t", "|")
_HEADER_BYTES = 1 << 20
LONGEST_NAME = 200
_WORKBOOKS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


class SourceReader(Protocol):
    """A readable source."""

    @property
    def name(self) -> str:
        """Return its name in messages."""
        ...

    @property
    def header(self) -> tuple[str, ...]:
        """Return the columns' names, in order, as written."""
        ...

    @property
    def stamp(self) -> str:
        """Return a stamp that changes when the delivered content does; empty where only reading it shows that."""
        ...

    @property
    def written(self) -> float | None:
        """Return when the content was last written or moved, in seconds since 1970; None where that cannot be known, as of a
        table."""
        ...

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """Create the table `raw` with these columns of the records of one release (of all: None), in source order."""
        ...


@dataclass(frozen=True, slots=True)
class FileSource:
    """A CSV or Parquet file, a folder with Parquet files, or a version of a Delta table."""

    path: Path
    format: str
    header: tuple[str, ...]
    delimiter: str = ","
    shown_as: str = ""  # in messages, where the path has a ${NAME}
    parts: tuple[Path, ...] = ()  # of a folder
    delta: DeltaVersion | None = None  # of which the parts are

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the files that the records are in, in their order."""
        return self.parts or (self.path,)

    @property
    def name(self) -> str:
        """Return the path; of one with ${NAME}, as it is declared. Of a Delta table with its version."""
        version = "" if self.delta is None else f", version {self.delta.number} of a Delta table"
        return f"{self.shown_as or self.path}{version}"

    @property
    def partitions(self) -> Mapping[str, str]:
        """Return the columns of a Delta table that are not in its files, with their types."""
        return {} if self.delta is None else self.delta.partitions

    @property
    def stamp(self) -> str:
        """See `SourceReader`."""
        if not self.parts:
            return stamp_file(self.path, self.name)
        stamps = [(path.name, stamp_file(path, self.shown_as or str(path))) for path in self.parts]
        version = [] if self.delta is None else [(self.delta.table, self.delta.number)]
        return hashlib.sha256(repr([*stamps, *version]).encode()).hexdigest()

    @property
    def written(self) -> float | None:
        """See `SourceReader`: of a folder, when a file was last written or moved into it, or into the log of the table."""
        log = () if self.delta is None else (self.path / LOG,)
        return max(changed_at(path) for path in (self.path, *log, *self.parts))

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceReader`."""
        with _as_declared(self.path, self.shown_as), source_errors(self.path):
            create_raw(self._scan(into), columns, release)

    def scan_parquet(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return the records of Parquet files, read in place."""

        def read(files: Sequence[Path]) -> duckdb.DuckDBPyRelation:
            return connection.read_parquet([_literal(path) for path in files], hive_partitioning=False)

        return read(self.files) if self.delta is None else self.delta.scan(read)

    def _scan(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        if self.format == "parquet":
            return self.scan_parquet(connection)
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
    shown_as: str = ""  # in messages, where the path has a ${NAME}

    @property
    def name(self) -> str:
        """Return the path and the table."""
        return f"{self.shown_as or self.path} table {self.table}"

    @property
    def stamp(self) -> str:
        """See `SourceReader`."""
        return stamp_file(self.path, self.name)

    @property
    def written(self) -> float | None:
        """See `SourceReader`: None, since other tables are written to the same file."""
        return None

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceReader`."""
        with _as_declared(self.path, self.shown_as), open_delivered(self.path, self.table) as connection:
            reader = connection.sql(select_columns(Qualified(self.table), columns, release)).to_arrow_reader()
            create_raw(into.from_arrow(reader), columns, release)

    @contextmanager
    def open(self, *, memory: int | None) -> Generator[duckdb.DuckDBPyRelation]:
        """Yield the table, to be read in place."""
        with _as_declared(self.path, self.shown_as), open_delivered(self.path, self.table, memory=memory) as connection:
            with source_errors(self.name):
                create_macros(connection)
            yield connection.table(self.table)


def find_source(
    declared: Source,
    *,
    folder: Path,
    values: Mapping[str, str],
    expected: frozenset[str],
    spark: SparkAddress | None = None,
    version: int | None = None,
) -> SourceReader:
    """Return the reader of the source that a policy declares.

    Paths are taken from `folder`; `${NAME}` in path or address is replaced from `values` (the environment). Of a CSV's possible
    delimiters, the one that finds `expected` names is used. `spark`: the server that has the catalogue of a Spark table;
    `version`: that of a Delta table, the current one without it.
    """
    if declared.spark is not None:
        return _find_spark_table(declared.spark, spark)
    if declared.postgres is not None:
        return find_postgres(expand(declared.postgres, values), table=declared.table, query=declared.query)
    written = declared.path or ""
    expanded = expand(written, values)
    if "://" in expanded:
        raise SourceError("this is an address and no file.", where=written, remedy="Fetch the file, and name it by its path.")
    path = folder / expanded
    shown_as = written if "${" in written else ""
    with _as_declared(path, shown_as):
        if declared.table is not None:
            return replace(_find_duckdb(path, declared.table), shown_as=shown_as)
        return replace(find_file(path, expected=expected, version=version), shown_as=shown_as)


@contextmanager
def _as_declared(path: Path, shown_as: str) -> Generator[None]:
    """Make errors name a file as the policy does, with its ${NAME}: the value from the environment may be a secret."""
    try:
        yield
    except ReleasePipelineError as error:
        if shown_as:
            error.where = error.where.replace(str(path), shown_as)
        raise


def _find_spark_table(table: str, spark: SparkAddress | None) -> SourceReader:
    if spark is None:
        what = "no Spark server is named."
        raise SourceError(
            what, where=f"Spark table {table}", remedy="Name it in site.yaml, as in spark: {url: 'sc://spark.example.org:15002'}."
        )
    from release_pipeline.store.spark import find_spark_table  # PyArrow is large, and Spark's client too

    return find_spark_table(spark, table)


def find_file(path: Path, *, expected: frozenset[str], version: int | None = None) -> FileSource | SurveySource:
    """Return the reader of a file, whose format its ending shows; or of a folder with Parquet files, or a Delta table."""
    if path.is_dir():
        return _find_folder(path, version)
    _check_file(path)
    ending = read_ending(path.name, where=str(path))
    if ending in SURVEYS:
        return SurveySource(path, ending, _read_survey_header(path, stamp_file(path, str(path)), ending))
    try:
        with path.open("rb") as file:
            if ending == ".parquet":
                _refuse_tables(path.resolve().parent)
                return FileSource(path, "parquet", tuple(_read_schema(file, path).names))
            return _csv_header(file.read(_HEADER_BYTES), path, expected)
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(path)) from None


def list_parquet(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files that are directly in a folder, by name, without those that begin with `_` or `.`, which are no
    records."""
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".parquet" and path.name[0] not in "_.")
        return tuple(path for path in found if path.is_file())
    except OSError as error:
        raise SourceError(f"the folder cannot be read: {error.strerror}.", where=str(folder)) from None


def _refuse_tables(folder: Path) -> None:
    """Refuse what is in a folder of a table whose log is not read: files that no longer belong to the table may lie there."""
    for kind, sign in _TABLES.items():
        places = (folder, *folder.parents) if kind != "DuckLake" else (folder,)  # its files alone have a sign
        if table := next((place for place in places if any(place.glob(sign))), None):
            what = f"the folder {table.name} is a table of {kind}, by its {sign}: deleted records may lie in it."
            remedy = "Name the folder of the whole table." if kind == "Delta" else OTHERWISE
            raise SourceError(what, where=str(folder), remedy=remedy)


def _find_folder(folder: Path, version: int | None) -> FileSource:
    """Return the reader of all Parquet files in a folder, which have the same columns and types; of a Delta table, those of a
    version."""
    import pyarrow as pa  # a large library: only where it is used

    if (delta := read_delta(folder, version) if (folder / LOG).is_dir() else None) is None:
        _refuse_tables(folder.resolve())
    paths, schemas = list_parquet(folder) if delta is None else delta.files, list[pa.Schema]()
    if not paths:
        remedy = "Name a file, or a folder that has Parquet files."
        raise SourceError("this is a folder with no *.parquet directly in it.", where=str(folder), remedy=remedy)
    for path in paths:
        _check_file(path)
        try:
            with path.open("rb") as file:
                schemas.append(_read_schema(file, path))
        except OSError as error:
            raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(path)) from None
        if delta is not None and (other := delta.find_other(schemas[-1], schemas[0])):
            what = f"it has no column '{other}', or of another type than the table."
            raise SourceError(what, where=str(path), remedy="Compact the table (OPTIMIZE), which writes its files again.")
        if delta is None and not schemas[-1].equals(schemas[0]):
            what = f"it has other columns, or other types of them, than {paths[0].name}."
            raise SourceError(what, where=str(path), remedy="Deliver files of one schema, or another folder.")
    header = tuple(schemas[0].names) if delta is None else delta.header
    return _check_names(FileSource(folder, "parquet", header, parts=paths, delta=delta), str(folder))


def read_ending(name: str, *, where: str) -> str:
    """Return the format that a file's name shows; refused where no such file is read."""
    ending = Path(name.lower()).suffix
    if ending in _WORKBOOKS:
        raise SourceError(
            "workbooks are not read: no type holds for all cells of a column, dates are numbers whose meaning is guessed, and "
            "what a cell shows may be what a formula gave last.",
            where=where,
            remedy="Save the sheet as CSV in UTF-8, look at dates and long numbers in it, and name that file.",
        )
    if ending not in (*TABLES, ".parquet", *SURVEYS):
        raise SourceError(
            "the file is neither .csv nor .parquet, nor of Stata, SPSS or SAS.", where=where, remedy="Convert or rename it."
        )
    return ending


@lru_cache(maxsize=16)  # a timetable checks a source every half minute: it reads the header of each version once
def _read_survey_header(path: Path, stamp: str, ending: str) -> tuple[str, ...]:
    return _check_names(open_survey(path, ending, where=str(path)), str(path)).header


_Delivered = TypeVar("_Delivered", FileSource, SurveySource)


def _check_names(source: _Delivered, where: str) -> _Delivered:
    if not any(source.header):
        raise SourceError("there are no column names.", where=where, remedy="Deliver it with a header.")
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in source.header):
        hint = "; a quote in the first line may not end" if isinstance(source, FileSource) else ""
        what = f"a column name has several lines or more than {LONGEST_NAME} characters{hint}."
        raise SourceError(what, where=where, remedy="Repair the header.")
    return source


@contextmanager
def open_raw(
    source: SourceReader, columns: Columns, *, release: ReleaseFilter | None = None, derive: Mapping[str, Derived] = _NONE
) -> Generator[RawTable]:
    """Yield some columns of a source, loaded in memory and never spilled to disk; for `mask`, which stores nothing."""
    with open_memory() as connection:
        yield load_raw(connection, source, columns, release=release, derive=derive)


def load_raw(
    connection: duckdb.DuckDBPyConnection,
    source: SourceReader,
    columns: Columns,
    *,
    release: ReleaseFilter | None = None,
    derive: Mapping[str, Derived] = _NONE,
) -> RawTable:
    """Create the table `raw` in this database from some columns of a source, and the columns derived from them."""
    with source_errors(source.name):
        create_macros(connection)
    source.load(connection, columns, release)
    derive_columns(connection, source.name, derive)
    return RawTable(connection, source.name)


def _find_duckdb(path: Path, table: str) -> DuckdbSource:
    _check_file(path)
    with open_delivered(path, table) as connection:
        return DuckdbSource(
            path, table, tuple(connection.sql(statement("stages/select_no_records", table=Qualified(table))).columns)
        )


def _literal(path: Path) -> str:
    """Return the path for DuckDB, which would take *, ? and [ for a pattern and read other files, and ~ for a home."""
    return re.sub(r"([*?[])", r"[\1]", str(path.absolute()))


def _check_file(path: Path) -> None:
    try:
        if path.is_dir():  # as the file of a database
            raise SourceError("this is a directory, not a file.", where=str(path), remedy="Name the file in it.")
        if path.stat().st_size == 0:
            raise SourceError("the file is empty.", where=str(path), remedy="Deliver it again.")
    except FileNotFoundError:
        raise SourceError("there is no such file.", where=str(path), remedy="Check the path.") from None
    except OSError as error:
        raise SourceError(f"the file cannot be read: {error.strerror}.", where=str(path)) from None


def _read_schema(file: BinaryIO, path: Path) -> pa.Schema:
    import pyarrow as pa  # a large library: only where it is used
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError):
        raise SourceError(
            "the file is no readable Parquet; it may be truncated.", where=str(path), remedy="Deliver it again."
        ) from None


def _csv_header(start: bytes, path: Path, expected: frozenset[str]) -> FileSource:
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
    delimiter, header = max(candidates, key=lambda pair: (len(expected.intersection(map(canonical_name, pair[1]))), len(pair[1])))
    return _check_names(FileSource(path, "csv", header, delimiter), str(path))
