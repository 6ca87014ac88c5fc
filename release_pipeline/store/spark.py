"""Records in place that a Spark cluster reads, by Spark Connect: this process needs no JVM.

Workers get functions by value, and give exact counts or the cells that are asked for. Parquet files they read themselves; of a
table or view of the catalogue Spark gives them the records.
"""

from __future__ import annotations

import hashlib
import os
import re
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
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import release_pipeline
from release_pipeline.errors import ReleasePipelineError, SourceError, StoreError
from release_pipeline.mechanisms.noise.unclaimed import make_random
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.counted import CountPart
from release_pipeline.store import spark_tasks as tasks
from release_pipeline.store.database import open_memory, source_errors
from release_pipeline.store.in_place import COUNTED, TIMES, CellsOfColumn, give_one
from release_pipeline.store.raw import Columns, OfServer, ReleaseFilter, create_raw, list_columns
from release_pipeline.store.spark_tasks import Piece, Selection, Work

_T = TypeVar("_T")
EXTRA = "release-pipeline[spark]"
TASK = 1 << 22  # records that a task of files has at least, where there are more
_WAIT = 30  # seconds for a server that does not answer at first
_HASH = f"{OURS}_hash"  # of a record of a table
_TRIES = 3  # to draw a sample
_RESULT = "place int, entries binary, counts binary"  # `tasks.RESULT` as Spark has it
_RETRIES = 6  # waits for one that does no more: half a minute together, for each of some three attempts
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


_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND|NO_SUCH_CATALOG|CATALOG_NOT_FOUND"
_WRONG = {  # by what the name and the text of an exception have: the first that fits
    "^FutureTimeoutError": (
        "no Spark Connect server answers at {host}.",
        "Start it, or correct the address: host, port, use_ssl=true for TLS (with a token it is TLS but to localhost).",
    ),
    "^PySparkValueError": ("the address has a parameter that Spark's client does not take.", "Correct it."),
    "UNAUTHENTICATED": (
        "the Spark server at {host} does not accept the token, or there is none.",
        "Let the environment have it: as SPARK_CONNECT_AUTHENTICATE_TOKEN, or in the whole address.",
    ),
    _NO_TABLE: ("the Spark server at {host} knows no such table.", "Check its name, and the rights of this account."),
    "ModuleNotFoundError|PACKAGE_NOT_INSTALLED": (
        "the Python of Spark's workers lacks NumPy or PyArrow.",
        "Install both for them, and let spark.pyspark.python name that Python.",
    ),
    "PYTHON_VERSION_MISMATCH": (
        "the Python of Spark's workers has another version than this one.",
        f"Let them have Python {sys.version_info.major}.{sys.version_info.minor}, named by spark.pyspark.python.",
    ),
    "maxResultSize": ("the Spark server at {host} may not send so much.", "Let its spark.driver.maxResultSize be larger."),
    "^(Python|Spark|Analysis)Exception:": (
        "the Spark server at {host} could not do what it was asked ({name}).",
        "Its log says why.",
    ),
    "": ("the Spark server at {host} does not answer, or refuses what it is asked ({name}).", f"{_ASK} Its log may say why."),
}


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
            with _spark_errors(name, self.url):
                row = next(rows, None)

    def read_schema(self, table: str) -> pa.Schema:
        """The columns of a table or view and their types."""
        return self._ask(lambda session: session.table(_quote_parts(table)).limit(0).toArrow().schema, f"Spark table {table}")

    def _ask(self, question: Callable[[Any], _T], name: str, *, again: bool = True) -> _T:
        """A session ends when it is not used for an hour, or its server is started again: then another is tried once."""
        try:
            session = _connect(self.url, self.where)
            with _spark_errors(name, self.url):
                return question(session)
        except SparkGone:
            _connect.cache_clear()
            if not again:
                raise
        return self._ask(question, name, again=False)


class _OnSpark:
    """Records that tasks read. `schema`: of the source, by its names there."""

    def __init__(
        self, spark: SparkAddress, name: str, schema: pa.Schema, columns: Columns, release: ReleaseFilter | None
    ) -> None:
        self._spark, self._name, self._columns, self._release = spark, name, columns, release
        read = list_columns(columns, release)
        for there in read:
            if len(schema.get_all_field_indices(there)) != 1:
                raise SourceError(f"it has no column '{there}', or several.", where=name, remedy="Correct the names.")
        types = pa.schema([(there, tasks.plain_type(schema.field(there).type)) for there in read])
        with open_memory() as connection, source_errors(name):
            kinds = dict(zip(read, map(str, connection.from_arrow(types.empty_table()).types), strict=True))
        self.schema = pa.schema([(here, types.field(there).type) for here, there in columns.items()])
        self.kinds = {here: kinds[there] for here, there in columns.items()}
        if release is not None and not COUNTED.fullmatch(kinds[release[0]]):
            what = f"Spark's workers do not compare '{release[0]}': it has neither texts nor numbers of up to 64 bits."
            raise SourceError(what, where=name, remedy="Deliver it as text, or say engine: duckdb.")
        self._tasks: int | None = None  # where it is known before
        self._done: dict[int, int] = {}  # how many records each task had that was done

    @abstractmethod
    def _start(self, session: Any, selection: Selection, work: Work) -> Any:
        """What Spark is to do, as a table of `tasks.RESULT`."""

    def count_cells(self, columns: Sequence[str]) -> Iterator[CellsOfColumn]:
        """See `RecordsInPlace`: all in one pass, whose counts are held as bytes."""
        blobs: dict[str, list[bytes]] = {name: [] for name in columns}
        for index, blob, _ in self._run(columns, tasks.count_cells):
            blobs[columns[index]].append(blob)
        for name in columns:
            yield name, self._sum_cells(name, blobs.pop(name))

    def _sum_cells(self, column: str, blobs: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        """The cells of a column and their counts, from those of all tasks."""
        none = pa.record_batch([pa.array([], self.schema.field(column).type), pa.array([], pa.int64())], names=["cells", "times"])
        with source_errors(self._name):
            summed = tasks.sum_cells([none, *map(tasks.read_blob, blobs)]).sort_by("cells")
        schema = pa.schema([(column, self.schema.field(column).type), (TIMES, pa.int64())])
        table = pa.Table.from_arrays(summed.columns, names=schema.names)
        return give_one((batch.cast(schema) for batch in table.to_batches(tasks.BATCH)), schema)

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """See `RecordsInPlace`: a row for each task, or for each of its columns."""
        rows = self._run(columns, function)
        return pa.Table.from_pylist([dict(zip(tasks.RESULT.names, row, strict=True)) for row in rows], schema=tasks.RESULT)

    def read_column(self, column: str) -> Iterator[pa.RecordBatch]:
        """See `RecordsInPlace`."""
        return give_one(self.read([column]), pa.schema([self.schema.field(column)]))

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns as they are delivered."""
        for _, blob, _ in self._run(columns, tasks.read_part):
            yield tasks.read_blob(blob)

    def sample(self, columns: Sequence[str], count: int, key: bytes) -> pa.Table:
        """See `RecordsInPlace`. Of files the same records as `RelationInPlace` gives; of a table as long as Spark reads it in the
        same order. Where it comes in other parts than before, they are counted and drawn from again."""
        if not self._done:
            list(self._run(list(self._columns)[:1], tasks.count_nothing))
        total, random = sum(self._done.values()), make_random(key, "sample")
        places = np.sort(random.choice(total, min(count, total), replace=False, shuffle=False))
        for _ in range(_TRIES):
            known, ends = self._done, np.cumsum([0, *(records for _, records in sorted(self._done.items()))])
            within = [own - first for own, first in zip(np.split(places, np.searchsorted(places, ends[1:])), ends, strict=True)]
            taken = list(self._run(columns, tasks.read_part, within))
            if self._done == known:
                schema = pa.schema([self.schema.field(name) for name in columns])
                return pa.Table.from_batches([tasks.read_blob(blob) for _, blob, _ in taken], schema)
            if sum(self._done.values()) != total:
                break
        raise SourceError(_CODES["changed"][0], where=self._name, remedy=_CODES["changed"][1])

    def _run(
        self, columns: Sequence[str], work: Work, places: Sequence[npt.NDArray[np.int64]] | None = None
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """The rows of all tasks, of one after the other; refused where a task does not tell once that it is done."""
        selection = Selection(tuple((self._columns.get(name, name), name) for name in columns), self._release, places)
        done: list[tuple[int, int]] = []
        for column, entries, counts in self._spark.run(lambda session: self._start(session, selection, work), self._name):
            if column == tasks.FAILED:
                what, remedy = _CODES[entries.decode()]
                raise SourceError(what, where=self._name, remedy=remedy)
            if column == tasks.DONE:
                done.append((int(entries), int(counts)))
            else:
                yield column, entries, counts
        count = len(done) if self._tasks is None else self._tasks
        if sorted(number for number, _ in done) != list(range(count)):
            raise StoreError("the Spark server did not have every task done once.", where=self._spark.where, remedy=_ASK)
        self._done = dict(done)


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
        self._files = [_File.read(path.absolute(), name) for path in files]
        super().__init__(spark, name, self._files[0].schema, columns, release)
        self._records = sum(sum(file.groups) for file in self._files)
        self._parts = self._cut(count or max(self._records // TASK, 1))
        self._tasks = len(self._parts)

    def _cut(self, count: int) -> list[list[Piece]]:
        """The row groups of tasks with about equally many records."""
        parts: list[dict[_File, list[int]]] = [{} for _ in range(count)]
        first = 0
        for file in self._files:
            for group, records in enumerate(file.groups):
                parts[first * count // max(self._records, 1)].setdefault(file, []).append(group)
                first += records
        pieces = [[Piece(str(file.path), file.size, file.written, tuple(own)) for file, own in part.items()] for part in parts]
        return [part for part in pieces if part] or [[]]

    def snapshot(self) -> str:
        """The files' names, sizes, times and footers. Files of other releases are among them."""
        files = [_File.read(file.path, self._name) for file in self._files]
        seen = [(file.path.name, file.size, file.written, file.footer) for file in files]
        return f"{self._records} {hashlib.sha256(repr(seen).encode()).hexdigest()}"

    def _start(self, session: Any, selection: Selection, work: Work) -> Any:
        numbers = session.range(0, len(self._parts), 1, len(self._parts))
        return numbers.mapInArrow(partial(tasks.run_pieces, self._parts, selection, work), _RESULT)


@dataclass(frozen=True, slots=True)
class _File:
    """A Parquet file as the driver finds it. `groups`: how many records each row group has."""

    path: Path
    size: int
    written: int
    footer: str
    groups: tuple[int, ...]
    schema: pa.Schema = field(compare=False)

    @classmethod
    def read(cls, path: Path, name: str) -> _File:
        try:
            with source_errors(name), path.open("rb") as file:
                known, footer = os.fstat(file.fileno()), pq.read_metadata(file)
                file.seek(-footer.serialized_size - 8, os.SEEK_END)  # with its length, and a mark
                digest = hashlib.sha256(file.read()).hexdigest()
        except OSError as error:
            raise SourceError(f"a file cannot be read: {error.strerror}.", where=name, remedy="Deliver it again.") from None
        groups = tuple(footer.row_group(group).num_rows for group in range(footer.num_row_groups))
        return cls(path, known.st_size, known.st_mtime_ns, digest, groups, footer.schema.to_arrow_schema())


class SparkTable(_OnSpark):
    """A table or view of the catalogue, which Spark reads: what its view and its row filters show."""

    def __init__(self, spark: SparkAddress, table: str, columns: Columns, release: ReleaseFilter | None) -> None:
        self._table_name = _quote_parts(table)
        name = f"Spark table {table}"
        super().__init__(spark, name, spark.read_schema(table), columns, release)

    def snapshot(self) -> str:
        """How many records there are, and a sum of their hashes that is another, but for a chance of 2^-64, when a record is."""
        total = sum(int(entries) for _, entries, _ in self._run([_HASH], tasks.sum_part)) % (1 << 64)
        return f"{sum(self._done.values())} {total}"

    def _start(self, session: Any, selection: Selection, work: Work) -> Any:
        delivered = session.table(self._table_name)
        if _HASH in selection.there:  # a cell that is missing leaves Spark's hash as it is
            cells = (f"{name}, {name} IS NULL" for name in map(_quote, self._columns.values()))
            delivered = delivered.selectExpr("*", f"xxhash64({', '.join(cells)}) AS {_HASH}")
        return delivered.select(*map(_quote, selection.there)).mapInArrow(partial(tasks.run_partition, selection, work), _RESULT)


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


@cache
def _connect(url: str, where: str) -> Any:
    """Once in a process."""
    with _spark_errors(where, url):
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


def _describe(error: Exception, where: str, url: str) -> ReleasePipelineError:
    """An error of ours for one of Spark, by its kind. It names host and port of an address, since the rest may be secret."""
    host, name = url.removeprefix("sc://").partition("/")[0], type(error).__name__
    pattern = next(own for own in _WRONG if re.search(own, f"{name}: {error}"))
    kind = {_NO_TABLE: SourceError, "": SparkGone}.get(pattern, StoreError)
    what, remedy = _WRONG[pattern]
    return kind(what.format(host=host, name=name), where=where, remedy=remedy)


@contextmanager
def _spark_errors(where: str, url: str) -> Generator[None]:
    """What Spark and the way to it say, in words of our own: theirs may quote cells, as of a view that cannot be computed, or a
    token. Their warnings are about versions of pandas, which is not used, and about what does not answer, which is told.
    Meanwhile the program has a file: where it has none, as in a process that another one began, Spark's client takes it for a
    test of its own, and ends it."""
    failed: ReleasePipelineError | None = None
    program = vars(sys.modules["__main__"])
    has_file = "__file__" in program
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.setdefault("__file__", "")
            yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "grpc"):
            raise
        failed = _describe(error, where, url)
    finally:
        if not has_file:
            program.pop("__file__", None)
    if failed is not None:
        raise failed  # here nothing leads back to the exception and what it quotes
