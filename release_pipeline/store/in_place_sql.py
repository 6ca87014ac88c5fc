"""Records that are counted in a Postgres server, which groups and counts by SQL: no function of ours runs there, and of each
reading only counts come back. Cells go there as parameters: a server that writes parameters to its log is refused."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, TypeGuard, cast

import numpy as np
import pyarrow as pa

from release_pipeline.errors import SourceError
from release_pipeline.mechanisms.basis.counting import Ints, TablePlan, sum_tables
from release_pipeline.mechanisms.noise.streams import derive_key
from release_pipeline.policy.values.scalars import OURS
from release_pipeline.rows.batches import Cells, CountTables, TextCells
from release_pipeline.rows.counted import CountPart
from release_pipeline.store.database import (
    Identifier,
    Part,
    Qualified,
    Subquery,
    open_memory,
    quote_identifier,
    source_errors,
    statement,
)
from release_pipeline.store.in_place import TIMES, CellsOfColumn
from release_pipeline.store.raw import Columns, ReleaseFilter, choose_columns, create_macros
from release_pipeline.store.remote import PostgresSource, begin_reading, name_of, server_errors

_KINDS = {  # DuckDB's name of what Arrow delivers of a type; others are not counted in place
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "text": "VARCHAR",
    "character varying": "VARCHAR",
}
_BATCH = 1 << 17  # records that are read together
_NUMBER = f"{OURS}_number"  # what tells records apart
_WHOLE, _REAL, _TEXT = (pa.int64(), "bigint"), (pa.float64(), "float8"), (pa.string(), "text")  # of Arrow, and of Postgres
_Kind = tuple[pa.DataType, str]


class _Values(list[pa.Array]):
    """The parameters of a statement."""

    def add(self, values: Any, kind: _Kind) -> str:
        """The name of a parameter that is an array of these values."""
        self.append(pa.array([values], pa.list_(kind[0])))
        return f"${len(self)}::{kind[1]}[]"


@contextmanager
def open_in_place(source: PostgresSource, columns: Columns, release: ReleaseFilter | None) -> Generator[PostgresInPlace]:
    """The records of one release of a source: all that is read of them meanwhile is of the same state."""
    cursor = begin_reading(source.address, source.table)
    try:
        yield PostgresInPlace(cursor, source.table, columns, release)
    finally:
        with suppress(Exception):  # it may be what failed
            cursor.connection.close()


class PostgresInPlace:
    """A table of Postgres, or a query."""

    def __init__(self, cursor: Any, table: Qualified | Subquery, columns: Columns, release: ReleaseFilter | None) -> None:
        self._cursor, self._table, self._columns, self._cursors = cursor, table, columns, count()
        self._ask(statement("in_place/use_settings"))
        if self._ask(statement("in_place/find_logging")).column(0)[0].as_py():
            raise SourceError(
                "the server writes parameters of statements to its log, and with them cells.",
                where=name_of(table),
                remedy="Have log_parameter_max_length set to 0 for this account (ALTER ROLE ... SET), or say engine: auto.",
            )
        self.kinds = {here: self._find_kind(there) for here, there in columns.items()}
        self._release = None if release is None else (release[0], self._find_releases(release))

    def snapshot(self) -> str:
        """See `RecordsInPlace`."""
        values = _Values()
        text = statement("in_place/sum_records_in_postgres", columns=list(self._columns), records=self._records(values))
        [sums] = self._ask(text, values).to_pylist()
        return f"{sums['records']} {sums['total']}"

    def count_cells(self, columns: Sequence[str]) -> Iterator[CellsOfColumn]:
        """See `RecordsInPlace`."""
        for column in columns:
            values = _Values()
            names: dict[str, Identifier] = {"column": column, "times": TIMES, "records": self._records(values)}
            yield column, self._read(statement("in_place/count_cells_in_postgres", **names), values)

    def reduce(self, columns: Sequence[str], function: CountPart) -> pa.Table:
        """Tables are counted by the server; for any other function the records are read."""
        if not _is_counted(function):
            return pa.Table.from_batches(list(function(self._select(columns))))
        plan = function.plan
        ends = np.cumsum([plan.cells(table) for table in plan.counted])
        cells = self._count_tables(columns, function) if plan.counted else np.empty(0, dtype=np.int64)
        counts = dict(zip(plan.counted, np.split(cells, ends[:-1]), strict=False))  # no table: one part, which is empty
        return pa.Table.from_batches([function.pack(sum_tables(plan, counts))])

    def read_column(self, column: str) -> Iterator[pa.RecordBatch]:
        """See `RecordsInPlace`."""
        yield from self._select([column])

    def sample(self, columns: Sequence[str], count: int, key: bytes) -> pa.Table:
        """See `RecordsInPlace`. A record of a table is told apart by where it lies, another by its rank. The server gets
        a number that is made of the key for this alone."""
        values = _Values()
        row = f"ROW({', '.join(quote_identifier(there) for there in self._columns.values())})::text"
        rank = f'row_number() OVER (ORDER BY {row} COLLATE "C")'
        number = Part(f"({'ctid' if self._is_plain() else rank})::text AS {quote_identifier(_NUMBER)}")
        seed = int.from_bytes(derive_key(key, "sample in a server")[:7], "big")
        names: dict[str, Identifier] = {"records": self._records(values, number), "number": _NUMBER, "seed": seed, "count": count}
        return self._ask(statement("in_place/read_sample", columns=list(columns), **names), values)

    def _count_tables(self, columns: Sequence[str], function: CountTables) -> Ints:
        """The counts of the tables that are counted, one after the other."""
        plan, values, cells, first = function.plan, _Values(), list[Part](), 0
        records = self._records(values)
        encoders = enumerate(zip(columns, cast("Sequence[Cells]", function.encoders), strict=True))
        groups = [self._write_group(column, index, encoder, plan, values) for index, (column, encoder) in encoders]
        for number, table in enumerate(plan.counted):
            steps = (f"group{column} * {plan.cells(table[index + 1 :])}" for index, column in enumerate(table))
            cells.append(Part(f"{first} + {' + '.join(steps)} AS table{number}"))
            first += plan.cells(table)
        names = [f"table{number}" for number in range(len(cells))]
        text = statement(
            "in_place/count_tables",
            tables=names,
            cells=cells,
            groups=[group for group, _ in groups],
            records=records,
            joins=Part(" ".join(join for _, join in groups)),
            sets=[Part(f"({name})") for name in names],
        )
        counted, counts = self._ask(text, values), np.zeros(first, dtype=np.int64)
        counts[counted.column("cell").to_numpy()] = counted.column("times").to_numpy()
        return counts

    def _write_group(self, column: str, index: int, encoder: Cells, plan: TablePlan, values: _Values) -> tuple[Part, str]:
        """The group of a record in a column, and the join by which texts find theirs."""
        cell, join = f"delivered.{quote_identifier(column)}", ""
        if isinstance(encoder, TextCells):
            missing = encoder.size - 1
            texts = values.add(list(encoder.texts), _TEXT)
            groups = values.add(_find_groups(plan, index, encoder.runs), _WHOLE)
            join = f"LEFT JOIN unnest({texts}, {groups}) AS cells{index}(cell, of_cell) ON {cell} = cells{index}.cell"
            group = f"cells{index}.of_cell"
        else:
            missing = len(encoder.firsts)
            kind, number = (_WHOLE, f"{cell}::bigint")
            if self.kinds[column] in ("FLOAT", "DOUBLE"):
                kind, number = _REAL, f"nullif({cell}::float8, 'NaN')"
            firsts = values.add(encoder.firsts.astype(kind[0].to_pandas_dtype()), kind)
            groups = values.add(_find_groups(plan, index, np.maximum(np.arange(-1, missing), 0)), _WHOLE)
            group = f"({groups})[width_bucket({number}, {firsts}) + 1]"
        [behind] = _find_groups(plan, index, np.array([missing]))
        return Part(f"coalesce({group}, {behind}) AS group{index}"), join

    def _records(self, values: _Values, *numbers: Part) -> Subquery:
        """The records, by the names that are wanted. Texts are the same where their bytes are."""
        columns = [self._write_column(here, there) for here, there in self._columns.items()]
        condition = "true"
        if self._release is not None:
            column, written = self._release
            condition = f'{quote_identifier(column)}::text COLLATE "C" = ANY({values.add(written, _TEXT)})'
        names: Mapping[str, Identifier] = {"table": self._table, "condition": Part(condition)}
        return Subquery(_bare(statement("in_place/select_records", columns=[*columns, *numbers], **names)))

    def _write_column(self, here: str, there: str) -> Part:
        collation = ' COLLATE "C"' if self.kinds[here] == "VARCHAR" else ""
        return Part(f"{quote_identifier(there)}{collation} AS {quote_identifier(here)}")

    def _find_kind(self, there: str) -> str:
        [kind] = self._ask(statement("in_place/select_kind", column=there, table=self._table)).column(0).to_pylist()
        return _KINDS.get(kind, f"{kind} in Postgres")

    def _find_releases(self, release: ReleaseFilter) -> list[str]:
        """How the server writes the entries that are the one wanted, by the rules that every source is read by."""
        names = {"column": release[0], "table": self._table, "delivered": f"{OURS}_delivered", "written": f"{OURS}_written"}
        entries = self._ask(statement("in_place/list_releases", **names))
        with source_errors(name_of(self._table)), open_memory() as connection:
            create_macros(connection)
            wanted = (names["delivered"], release[1])
            return [
                text for (text,) in choose_columns(connection.from_arrow(entries), {"text": names["written"]}, wanted).fetchall()
            ]

    def _is_plain(self) -> bool:
        """Whether it is a table whose records each lie at another place, so that this tells them apart."""
        if isinstance(self._table, Subquery):
            return False
        name = pa.array([".".join(quote_identifier(part) for part in self._table.split("."))])
        return self._ask(statement("in_place/select_table"), [name]).column(0)[0].as_py() > 0

    def _select(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        values = _Values()
        records = self._records(values)
        return self._read(statement("in_place/select_columns", columns=list(columns), records=records), values)

    def _read(self, query: str, values: Sequence[pa.Array]) -> Iterator[pa.RecordBatch]:
        """What a query gives, part by part."""
        cursor = f"{OURS}_{next(self._cursors)}"
        self._ask(statement("in_place/create_cursor", cursor=cursor, query=Part(_bare(query))), values)
        text, is_first = statement("in_place/read_part", records=_BATCH, cursor=cursor), True
        while len(part := self._ask(text)) or is_first:
            yield from part.to_batches() or [pa.RecordBatch.from_pylist([], part.schema)]
            is_first = False
        self._ask(statement("in_place/drop_cursor", cursor=cursor))

    def _ask(self, text: str, values: Sequence[pa.Array] = ()) -> pa.Table:
        """What a statement gives, all at once."""
        bound = pa.record_batch(list(values), names=[f"value{index}" for index in range(len(values))]) if values else None
        with server_errors(self._table):
            self._cursor.execute(text, bound)
            return self._cursor.fetch_arrow_table() if self._cursor.description else pa.table({})


def _is_counted(function: object) -> TypeGuard[CountTables]:
    """Whether a function says what it counts, so that a server can."""
    return isinstance(function, CountTables) and all(isinstance(encoder, Cells) for encoder in function.encoders)


def _find_groups(plan: TablePlan, column: int, runs: Ints) -> Ints:
    return plan.groups[column].find(runs).astype(np.int64)


def _bare(text: str) -> str:
    """A statement without its end, so that it can be in another."""
    return text.rstrip().removesuffix(";")
