"""Records in place that a Spark cluster reads, by Spark Connect: this process needs no JVM.

Workers get functions by value, and give exact counts or the cells that are asked for. Parquet files they read themselves; of a
table or view of the catalogue Spark gives them the records.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import release_pipeline
from release_pipeline.errors import ReleasePipelineError, SourceError, StoreError
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.rows.counted import CountPart
from release_pipeline.store import spark_tasks as tasks
from release_pipeline.store.database import open_memory, read_batches, source_errors, statement
from release_pipeline.store.in_place import COUNTED, TIMES, CellsOfColumn, give_one
from release_pipeline.store.raw import Columns, OfServer, ReleaseFilter, create_raw, list_columns
from release_pipeline.store.spark_tasks import Piece, Selection, Work

_T = TypeVar("_T")
EXTRA = "release-pipeline[spark]"
TASK = 1 << 21  # records that a task of files has at least, where there are more
_TASKS = 64  # of files, at most
_WAIT = 30  # seconds for a server that does not answer at first
_RETRIES = 6  # waits for one that does no more: half a minute together, for each of some three attempts
_MOST = (1 << 64) - 1  # of the numbers that are drawn
_ASK = "Ask who runs it why."
_CODES = {  # what a worker says in the place of its exception
    "changed": ("it was changed while its records were counted.", "Deliver it in one step, and run the same command again."),
    "missing": (
        "Spark's workers do not find a file, or may not read it.",
        "Let the folder have the same path on all machines, or say engine: duckdb.",
    ),
    "memory": ("the memory of Spark's workers does not suffice.", "Let them have more: spark.executor.pyspark.memory."),
    "unreadable": ("a file is no readable Parquet; it may be truncated.", "Deliver it again."),
    "failed": ("Spark's workers cannot count these records.", "Say engine: duckdb; and tell whoever makes this software."),
}


class SparkGone(StoreError):
    """A server does not answer, or not for this session, or gave up a task."""

    code = StoreError.code


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """Where a server of Spark Connect is. `where`: what messages name instead, since the address may have a token."""

    url: str = field(repr=False)
    where: str

    def run(self, start: Callable[[Any], Any], name: str) -> Iterator[tuple[int, bytes, bytes]]:
        """The rows of what is started in a session; `name`: of the source."""

        def begin(session: Any) -> tuple[Any, Iterator[Any]]:
            rows: Iterator[Any] = start(session).toLocalIterator()
            return next(rows, None), rows

        row, rows = self._ask(begin, name)
        while row is not None:
            yield row[0], bytes(row[1]), bytes(row[2] or b"")
            with _spark_errors(name, _read_host(self.url)):
                row = next(rows, None)

    def read_schema(self, table: str) -> pa.Schema:
        """The columns of a table or view and their types."""
        return self._ask(lambda session: session.table(_quote_parts(table)).limit(0).toArrow().schema, f"Spark table {table}")

    def _ask(self, question: Callable[[Any], _T], name: str) -> _T:
        """A session ends when it is not used for an hour, or its server is started again: then another is tried once."""
        try:
            return self._ask_once(question, name)
        except SparkGone:
            _connect.cache_clear()
            return self._ask_once(question, name)

    def _ask_once(self, question: Callable[[Any], _T], name: str) -> _T:
        session = _connect(self.url, self.where)
        with _spark_errors(name, _read_host(self.url)):
            return question(session)


class _OnSpark:
    """Records that tasks read. `schema`: of the source, by its names there."""

    def __init__(
        self,
        spark: SparkAddress,
        name: str,
        schema: pa.Schema,
        columns: Columns,
        release: ReleaseFilter | None,
    ) -> None:
        self._spark, self._name, self._columns, self._release = spark, name, columns, release
        for there in list_columns(columns, release):
            if len(schema.get_all_field_indices(there)) != 1:
                raise SourceError(f"it has no column '{there}', or several.", where=name, remedy="Correct the names.")
        self.schema = pa.schema([(here, tasks.plain_type(schema.field(there).type)) for here, there in columns.items()])
        with source_errors(name):
            self.kinds = dict(zip(self.schema.names, _name_kinds(self.schema.types), strict=True))
            release_kind = "VARCHAR" if release is None else _name_kinds([tasks.plain_type(schema.field(release[0]).type)])[0]
        if release is not None and not COUNTED.fullmatch(release_kind):
            what = f"Spark's workers do not compare '{release[0]}': it has neither texts nor numbers of up to 64 bits."
            raise SourceError(what, where=name, remedy="Deliver it as text, or say engine: duckdb.")
        self._done: dict[int, int] = {}

    @abstractmethod
    def _start(self, session: Any, selection: Selection, work: Work) -> Any:
        """What Spark is to do, as a table of `tasks.RESULT`."""

    def _check(self, done: dict[int, int], *, whole: bool) -> None:
        """Refuse numbers of tasks that are not all tasks."""
        if sorted(done) != list(range(len(done))):
            raise StoreError("the Spark server did not have every task done once.", where=self._spark.where, remedy=_ASK)

    def count_cells(self, columns: Sequence[str]) -> Iterator[CellsOfColumn]:
        """See `RecordsInPlace`: all in one pass, whose counts are held as bytes."""
        blobs: dict[str, list[bytes]] = {name: [] for name in columns}
        for index, blob, _ in self._run(columns, tasks.count_cells):
            blobs[columns[index]].append(blob)
        for name in columns:
            yield name, self._sum_cells(name, blobs.pop(name))

    def _sum_cells(self, column: str, blobs: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        """The cells of a column and their counts, from those of all tasks."""
        schema = pa.schema([("cells", self.schema.field(column).type), ("times", pa.int64())])
        with open_memory() as connection, source_errors(self._name):
            connection.register("delivered", pa.RecordBatchReader.from_batches(schema, map(tasks.read_blob, blobs)))
            summed = connection.sql(statement("in_place/sum_cells", column=column, times=TIMES))
            reader = summed.to_arrow_reader(tasks.BATCH)
            yield from give_one(read_batches(reader), reader.schema)

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """See `RecordsInPlace`: a row for each task, or for each of its columns."""
        rows = list(self._run(columns, partial(tasks.count_part, function)))
        cells = zip(*rows, strict=True) if rows else ((), (), ())
        return pa.table([pa.array(own, kind) for own, kind in zip(cells, tasks.RESULT.types, strict=True)], schema=tasks.RESULT)

    def read_column(self, column: str) -> Iterator[pa.RecordBatch]:
        """See `RecordsInPlace`."""
        return give_one(self.read([column]), pa.schema([self.schema.field(column)]))

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns as they are delivered."""
        for _, blob, _ in self._run(columns, tasks.read_part):
            yield tasks.read_blob(blob)

    def _count_records(self) -> dict[int, int]:
        """How many each task has."""
        if not self._done:
            list(self._run(list(self._columns)[:1], tasks.count_nothing))
        return self._done

    def _table(self, columns: Sequence[str], blobs: Sequence[bytes]) -> pa.Table:
        return pa.Table.from_batches(map(tasks.read_blob, blobs), pa.schema([self.schema.field(name) for name in columns]))

    def _run(self, columns: Sequence[str], work: Work, *, whole: bool = True) -> Iterator[tuple[int, bytes, bytes]]:
        """The rows of all tasks, of one after the other; refused where a task does not tell that it is done. `whole`: every task
        reads all its records."""
        columns_there = tuple((self._columns[name], name, self.schema.field(name).type) for name in columns)
        selection, done = Selection(columns_there, self._release), dict[int, int]()
        for column, entries, counts in self._spark.run(lambda session: self._start(session, selection, work), self._name):
            if column == tasks.FAILED:
                what, remedy = _CODES[entries.decode()]
                raise SourceError(what, where=self._name, remedy=remedy)
            if column != tasks.DONE:
                yield column, entries, counts
            elif int(entries) in done:
                raise StoreError("the Spark server had a task done twice.", where=self._spark.where, remedy=_ASK)
            else:
                done[int(entries)] = int(counts)
        self._check(done, whole=whole)
        if whole:
            self._done = done


class SparkFiles(_OnSpark):
    """Parquet files of one schema, which workers read themselves: Spark hands out row groups, and no record passes through its
    JVM. Files have the same paths on all machines. `count`: how many tasks there are."""

    def __init__(
        self,
        spark: SparkAddress,
        name: str,
        files: Sequence[Path],
        columns: Columns,
        release: ReleaseFilter | None,
        *,
        count: int | None = None,
    ) -> None:
        try:
            with source_errors(name):
                self._files = [_File.read(path.absolute(), name) for path in files]
                schema = pq.read_schema(files[0])
        except OSError as error:
            raise SourceError(f"a file cannot be read: {error.strerror}.", where=name, remedy="Deliver it again.") from None
        super().__init__(spark, name, schema, columns, release)
        self._records = sum(sum(file.groups) for file in self._files)
        self._parts = self._cut(count or min(max(self._records // TASK, 1), _TASKS))

    def _cut(self, count: int) -> list[list[Piece]]:
        """The row groups of tasks with about equally many records."""
        parts: list[dict[_File, list[int]]] = [{} for _ in range(count)]
        first = 0
        for file in self._files:
            for group, records in enumerate(file.groups):
                parts[first * count // max(self._records, 1)].setdefault(file, []).append(group)
                first += records
        pieces = [[Piece(str(file.path), *file.stamp, tuple(own)) for file, own in part.items()] for part in parts]
        return [part for part in pieces if part] or [[]]

    def snapshot(self) -> str:
        """The files' names, sizes, times and footers. Files of other releases are among them."""
        seen = [(file.path.name, *_stamp(file.path, self._name), file.footer) for file in self._files]
        return f"{self._records} {hashlib.sha256(repr(seen).encode()).hexdigest()}"

    def sample(self, columns: Sequence[str], count: int, key: bytes) -> pa.Table:
        """See `RecordsInPlace`. The same records as `RelationInPlace` gives."""
        known = self._count_records()
        ends = np.cumsum([known[number] for number in range(len(known))])
        total, taken = int(ends[-1]), list[tuple[int, bytes]]()
        places = np.sort(make_random(key, "sample").choice(total, min(count, total), replace=False, shuffle=False))
        cuts = np.searchsorted(places, ends[:-1])
        within = [own - first for own, first in zip(np.split(places, cuts), (0, *ends[:-1]), strict=True)]
        for number, blob, _ in self._run(columns, partial(tasks.take_part, within), whole=False):
            taken.append((number, blob))
        return self._table(columns, [blob for _, blob in sorted(taken, key=lambda pair: pair[0])])

    def _start(self, session: Any, selection: Selection, work: Work) -> Any:
        numbers = session.range(0, len(self._parts), 1, len(self._parts))
        return numbers.mapInArrow(partial(tasks.run_pieces, self._parts, selection, work), _result())

    def _check(self, done: dict[int, int], *, whole: bool) -> None:
        super()._check(done, whole=whole)
        is_short = whole and self._release is None and sum(done.values()) != self._records
        if is_short or len(done) != len(self._parts):
            raise StoreError("the Spark server did not have every task done.", where=self._spark.where, remedy=_ASK)


@dataclass(frozen=True, slots=True)
class _File:
    """A Parquet file as the driver finds it. `groups`: how many records each row group has."""

    path: Path
    stamp: tuple[int, int]
    footer: str
    groups: tuple[int, ...]

    @classmethod
    def read(cls, path: Path, name: str) -> _File:
        stamp = _stamp(path, name)
        with path.open("rb") as file:
            known = pq.read_metadata(file)
            file.seek(-known.serialized_size - 8, os.SEEK_END)  # with its length, and a mark
            footer = hashlib.sha256(file.read()).hexdigest()
        return cls(path, stamp, footer, tuple(known.row_group(group).num_rows for group in range(known.num_row_groups)))


def _stamp(path: Path, name: str) -> tuple[int, int]:
    """Size in bytes, and when it was written."""
    try:
        known = path.stat()
    except OSError as error:
        raise SourceError(f"a file cannot be read: {error.strerror}.", where=name, remedy="Deliver it again.") from None
    return known.st_size, known.st_mtime_ns


class SparkTable(_OnSpark):
    """A table or view of the catalogue, which Spark reads: what its view and its row filters show."""

    def __init__(self, spark: SparkAddress, table: str, columns: Columns, release: ReleaseFilter | None) -> None:
        self._table_name = _quote_parts(table)
        name = f"Spark table {table}"
        super().__init__(spark, name, spark.read_schema(table), columns, release)

    def snapshot(self) -> str:
        """How many records there are, and a sum that is another, but for a chance of 2^-64, when a record is."""
        total = sum(int(entries) for _, entries, _ in self._run(list(self._columns), tasks.sum_part)) % (1 << 64)
        return f"{sum(self._done.values())} {total}"

    def sample(self, columns: Sequence[str], count: int, key: bytes) -> pa.Table:
        """See `RecordsInPlace`: those with the smallest of numbers that are drawn. The same records as long as Spark reads the
        table in the same parts and order."""
        total, drawn = sum(self._count_records().values()), int(make_random(key, "sample").integers(1 << 63))
        wanted, share = min(count, total), count + 8 * count**0.5 + 16
        while True:
            limit = min(int(share / max(total, 1) * _MOST), _MOST)
            rows = list(self._run(columns, partial(tasks.draw_part, drawn, limit)))
            numbers = np.concatenate([np.empty(0, np.uint64), *(np.frombuffer(own, np.uint64) for _, _, own in rows)])
            if len(numbers) >= wanted:
                smallest = np.argsort(numbers, kind="stable")[:wanted]
                return self._table(columns, [blob for _, blob, _ in rows]).take(pa.array(smallest))
            if limit == _MOST:
                raise SourceError(_CODES["changed"][0], where=self._name, remedy=_CODES["changed"][1])
            share *= 2

    def _start(self, session: Any, selection: Selection, work: Work) -> Any:
        delivered = session.table(self._table_name).select(*map(_quote, selection.there))
        return delivered.mapInArrow(partial(tasks.run_partition, selection, work), _result())


@dataclass(frozen=True, slots=True)
class SparkSource(OfServer):
    """A table or view of Spark's catalogue as a source."""

    spark: SparkAddress
    table: str
    header: tuple[str, ...]

    @property
    def name(self) -> str:
        """The table."""
        return f"Spark table {self.table}"

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceReader`. Records come in whatever order Spark has them: they are sorted."""
        names = list_columns(columns, release)
        records = SparkTable(self.spark, self.table, dict(zip(names, names, strict=True)), None)
        with source_errors(self.name):
            delivered = pa.Table.from_batches(records.read(names), records.schema)
            create_raw(into.from_arrow(delivered), columns, release, in_any_order=True)


def find_spark_table(spark: SparkAddress, table: str) -> SparkSource:
    """The door to a table or view."""
    return SparkSource(spark, table, tuple(spark.read_schema(table).names))


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _quote_parts(table: str) -> str:
    return ".".join(map(_quote, table.split(".")))


def _name_kinds(types: Sequence[pa.DataType]) -> list[str]:
    """DuckDB's names of types."""
    with open_memory() as connection:
        empty = pa.table([pa.array([], kind) for kind in types], names=[str(place) for place in range(len(types))])
        return [str(kind) for kind in connection.from_arrow(empty).types] if types else []


@cache
def _result() -> Any:
    """`tasks.RESULT` as Spark has it."""
    types: Any = import_module("pyspark.sql.types")
    kinds = (types.IntegerType(), types.BinaryType(), types.BinaryType())
    made = types.StructType()
    for name, kind in zip(tasks.RESULT.names, kinds, strict=True):
        made = made.add(name, kind)
    return made


@cache
def _connect(url: str, where: str) -> Any:
    """Once in a process."""
    with _spark_errors(where, _read_host(url)):
        try:
            os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it would write on the terminal what is told as an error
            grpc: Any = import_module("grpc")  # these are large: only where they are used
            cloudpickle: Any = import_module("pyspark.cloudpickle")
            connect: Any = import_module("pyspark.sql.connect.session")
            client: Any = import_module("pyspark.sql.connect.client")
            retries: Any = import_module("pyspark.sql.connect.client.retries")
        except ImportError:
            raise StoreError("the Spark client is not installed.", where=where, remedy=f"Install {EXTRA}.") from None
        cloudpickle.register_pickle_by_value(release_pipeline)  # workers have none of it
        own = [("grpc.use_local_subchannel_pool", 1)]  # it does not wait for what an earlier session of this process waits for
        with client.DefaultChannelBuilder(url, own).toChannel() as channel:  # else a session is tried to be had for ten minutes
            grpc.channel_ready_future(channel).result(timeout=_WAIT)
        builder = connect.SparkSession.builder.channelBuilder(client.DefaultChannelBuilder(url, own))
        session = builder.appName("release-pipeline").create()
        session.client.set_retry_policies([retries.DefaultPolicy(max_retries=_RETRIES, max_backoff=15_000)])
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(tasks.BATCH))
        session.conf.set("spark.sql.session.timeZone", "UTC")
    return session


def _read_host(url: str) -> str:
    """Host and port of an address, and nothing that may be secret."""
    return url.removeprefix("sc://").partition("/")[0]


@contextmanager
def _spark_errors(where: str, host: str) -> Generator[None]:
    """What Spark and the way to it say, in words of our own: theirs may quote cells, as of a view that cannot be computed, or a
    token. Their warnings are about versions of pandas, which is not used, and about what does not answer, which is told."""
    failed: ReleasePipelineError | None = None
    try:
        with _named_program(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "grpc"):
            raise
        failed = _describe(error, where, host)
    if failed is not None:
        raise failed  # here nothing leads back to the exception and what it quotes


def _describe(error: Exception, where: str, host: str) -> ReleasePipelineError:
    name, text = type(error).__name__, str(error)
    if name == "FutureTimeoutError":
        what = f"no Spark Connect server answers at {host}."
        remedy = "Start it, or correct the address: host, port, use_ssl=true for TLS (with a token it is TLS but to localhost)."
    elif name == "PySparkValueError":
        what, remedy = "the address has a parameter that Spark's client does not take.", "Correct it."
    elif "UNAUTHENTICATED" in text:
        what = f"the Spark server at {host} does not accept the token, or there is none."
        remedy = "Let the environment have it: as SPARK_CONNECT_AUTHENTICATE_TOKEN, or in the whole address."
    elif "TABLE_OR_VIEW_NOT_FOUND" in text or "NO_SUCH_CATALOG" in text or "CATALOG_NOT_FOUND" in text:
        what, remedy = f"the Spark server at {host} knows no such table.", "Check its name, and the rights of this account."
        return SourceError(what, where=where, remedy=remedy)
    elif "ModuleNotFoundError" in text or "PACKAGE_NOT_INSTALLED" in text:
        what = "the Python of Spark's workers lacks NumPy or PyArrow."
        remedy = "Install both for them, and let spark.pyspark.python name that Python."
    elif "PYTHON_VERSION_MISMATCH" in text:
        what = "the Python of Spark's workers has another version than this one."
        remedy = f"Let them have Python {sys.version_info.major}.{sys.version_info.minor}, named by spark.pyspark.python."
    elif "maxResultSize" in text:
        what = f"the Spark server at {host} may not send so much."
        remedy = "Let its spark.driver.maxResultSize be larger."
    elif name in ("PythonException", "SparkException", "AnalysisException"):
        what, remedy = f"the Spark server at {host} could not do what it was asked ({name}).", "Its log says why."
    else:
        what = f"the Spark server at {host} does not answer, or refuses what it is asked ({name})."
        return SparkGone(what, where=where, remedy=f"{_ASK} Its log may say why.")
    return StoreError(what, where=where, remedy=remedy)


@contextmanager
def _named_program() -> Generator[None]:
    """With a file for the program: where it has none, as in a process that another one began, Spark's client takes it for a test
    of its own, and ends it."""
    program: Any = sys.modules["__main__"]
    has_file = hasattr(program, "__file__")
    if not has_file:
        program.__file__ = ""
    try:
        yield
    finally:
        if not has_file:
            del program.__file__
