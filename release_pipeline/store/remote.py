"""Sources in Postgres, through ADBC: a table, or a query that a policy has."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from release_pipeline.errors import SourceError
from release_pipeline.store.database import Qualified, Subquery, source_errors, statement
from release_pipeline.store.raw import Columns, OfServer, ReleaseFilter, create_raw, select_columns

_NOT_READ = {  # the message for each error when the server refuses
    False: ("the server or the table cannot be read.", "Check address, rights and table."),
    True: ("the server or the query cannot be read.", "Check address, rights and query: one SELECT, which changes nothing."),
}


@dataclass(frozen=True, slots=True)
class PostgresSource(OfServer):
    """A table or query in Postgres. No message has the address, which may hold a password, nor the query."""

    address: str
    table: Qualified | Subquery
    header: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the table."""
        return name_of(self.table)

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceReader`. A query has its records in the order of the server's plan, which may change: they are sorted."""
        with source_errors(self.name), _open(self.address, self.table) as cursor:
            cursor.execute(select_columns(self.table, columns, release))
            relation = into.from_arrow(cursor.fetch_record_batch())
            create_raw(relation, columns, release, in_any_order=isinstance(self.table, Subquery))


def find_postgres(address: str, *, table: str | None, query: str | None) -> PostgresSource:
    """Return the reader of a table, or of a query."""
    found = Qualified(table) if query is None else Subquery(query)
    with _open(address, found) as cursor:
        cursor.execute(statement("stages/select_no_records", table=found))
        return PostgresSource(address, found, tuple(cursor.fetch_record_batch().schema.names))


def name_of(table: Qualified | Subquery) -> str:
    """Return the name of a source in messages."""
    return "Postgres query" if isinstance(table, Subquery) else f"Postgres table {table}"


@contextmanager
def _open(address: str, table: Qualified | Subquery) -> Generator[Any]:
    """Yield a cursor on the server; see `begin_reading`."""
    cursor = begin_reading(address, table)
    with server_errors(table), cursor.connection, cursor:
        yield cursor


def begin_reading(address: str, table: Qualified | Subquery) -> Any:
    """Return a cursor on the server, in a transaction that changes nothing and sees the source as it is at its first statement;
    the caller closes its connection. ADBC prepares what it executes, so that it is one statement."""
    dbapi, _ = _load_driver()
    with server_errors(table):
        connection = dbapi.connect(address)
        try:
            cursor = connection.cursor()
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            cursor.execute(statement("stages/begin_reading"))
        except BaseException:
            connection.close()
            raise
    return cursor


@contextmanager
def server_errors(table: Qualified | Subquery) -> Generator[None]:
    """Turn ADBC's exceptions, which may quote the address and cells, into our own errors."""
    _, error = _load_driver()
    what, remedy = _NOT_READ[isinstance(table, Subquery)]
    has_failed = False
    try:
        yield
    except (error, OSError):
        has_failed = True
    if has_failed:  # raised here, it has no context that quotes the server
        raise SourceError(what, where=name_of(table), remedy=remedy)


def _load_driver() -> tuple[Any, type[Exception]]:
    """Return ADBC, and its exceptions."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SourceError(
            "Postgres sources need adbc-driver-postgresql.", remedy="pip install 'release-pipeline[postgres]'"
        ) from None
    return dbapi, Error
