"""Sources in object stores, through fsspec. Whoever reads them is known by the environment alone (the store's own variables and
files of credentials): an address that has a password is refused."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import duckdb

from release_pipeline.errors import ReleasePipelineError, SourceError, read_out_of_space
from release_pipeline.policy.file.sections import find_secret_in_address
from release_pipeline.store.database import Qualified, Subquery, source_errors, statement
from release_pipeline.store.environment import STORES
from release_pipeline.store.files import open_anonymous, path_of
from release_pipeline.store.raw import Columns, OfServer, ReleaseFilter, create_raw, select_columns


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """A file in an object store; `local` is the door to it once it is here."""

    address: str
    said: str
    local: Any  # a FileSource or a SurveySource: any door with a path
    stamp: str
    written: float | None
    vault: Path | None

    @property
    def name(self) -> str:
        """The address, as it is declared."""
        return self.said

    @property
    def header(self) -> tuple[str, ...]:
        """See `SourceDoor`."""
        header: tuple[str, ...] = self.local.header
        return header

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceDoor`: fetched into a file of the vault without a name, and read from there."""
        with fetched(self.address, self.vault, said=self.said) as path:
            if stamp_of(self.address, said=self.said) != self.stamp:
                raise SourceError("the object was replaced while it was read.", where=self.said, remedy="Try again.")
            replace(self.local, path=path).load(into, columns, release)


def is_address(place: str) -> bool:
    """Whether a path is an address of an object store, or of anything else that is no local file."""
    return "://" in place


def check_address(address: str, *, said: str) -> str:
    """The kind of store that an address is of; refused where none is known, or where a password may stand in it."""
    if (secret := find_secret_in_address(address)) is not None:
        raise SourceError(f"{secret}.", where=said, remedy="Leave them out: the store knows who reads by the environment.")
    scheme = address.partition("://")[0].lower()
    if scheme not in STORES:
        known = ", ".join(f"{name}://" for name in STORES)
        raise SourceError("sources with such an address are not read.", where=said, remedy=f"Known are files and {known}.")
    return scheme


def stamp_of(address: str, *, said: str) -> str:
    """Changes when the object does: from what the store says of it."""
    with _store(address, said) as (store, key):
        return str(store.ukey(key))


def written_at(address: str, *, said: str) -> float | None:
    """When the object was written, in seconds since 1970; None where its store does not say."""
    with _store(address, said) as (store, key):
        try:
            return float(store.modified(key).timestamp())
        except NotImplementedError:
            return None


@contextmanager
def open_object(address: str, *, said: str) -> Generator[BinaryIO]:
    """The object, of which only the bytes that are asked for are fetched."""
    with _store(address, said) as (store, key), store.open(key, "rb") as file:
        yield file


@contextmanager
def fetched(address: str, vault: Path | None, *, said: str) -> Generator[Path]:
    """The path of the whole object while it is read."""
    with open_anonymous(vault) as into:
        with open_object(address, said=said) as file:
            shutil.copyfileobj(file, into, 8 << 20)
            into.flush()
        yield path_of(into)


@contextmanager
def _store(address: str, said: str) -> Generator[tuple[Any, str]]:
    """The store and the object's key in it. What libraries say may have addresses and credentials: it ends here."""
    scheme = check_address(address, said=said)
    try:
        from fsspec.core import url_to_fs

        __import__(STORES[scheme])
    except ImportError:
        extra = "pip install 'release-pipeline[objects]'" if scheme == "s3" else f"pip install {STORES[scheme]}"
        raise SourceError(f"sources at {scheme}:// need {STORES[scheme]}.", where=said, remedy=extra) from None
    try:
        yield url_to_fs(address, skip_instance_cache=True, use_listings_cache=False)
    except ReleasePipelineError:
        raise
    except FileNotFoundError:
        raise SourceError(
            "there is no such object, or this account may not see it.", where=said, remedy="Check address and credentials."
        ) from None
    except Exception as error:
        if (full := read_out_of_space(error, said)) is not None:
            raise full from None
        raise SourceError(
            "the object store cannot be read.", where=said, remedy="Check address, network, and credentials in the environment."
        ) from None


# Sources in Postgres, through ADBC: a table, or a query that a policy has.


_NOT_READ = {  # what is said of each where the server refuses
    False: ("the server or the table cannot be read.", "Check address, rights and table."),
    True: ("the server or the query cannot be read.", "Check address, rights and query: one SELECT, which changes nothing."),
}


@dataclass(frozen=True, slots=True)
class PostgresSource(OfServer):
    """A table or query in Postgres. The address may hold a password: it is in no message, and neither is the query."""

    address: str
    table: Qualified | Subquery
    header: tuple[str, ...]

    @property
    def name(self) -> str:
        """The table."""
        return name_of(self.table)

    def load(self, into: duckdb.DuckDBPyConnection, columns: Columns, release: ReleaseFilter | None) -> None:
        """See `SourceDoor`. The records of a query come in whatever order the server's plan has, which may be another next time:
        they are sorted."""
        with source_errors(self.name), _open(self.address, self.table) as cursor:
            cursor.execute(select_columns(self.table, columns, release))
            relation = into.from_arrow(cursor.fetch_record_batch())
            create_raw(relation, columns, release, in_any_order=isinstance(self.table, Subquery))


def find_postgres(address: str, *, table: str | None, query: str | None) -> PostgresSource:
    """The door to a table, or to a query."""
    found = Qualified(table) if query is None else Subquery(query)
    with _open(address, found) as cursor:
        cursor.execute(statement("stages/select_no_records", table=found))
        return PostgresSource(address, found, tuple(cursor.fetch_record_batch().schema.names))


def name_of(table: Qualified | Subquery) -> str:
    """What messages call a source."""
    return "Postgres query" if isinstance(table, Subquery) else f"Postgres table {table}"


@contextmanager
def _open(address: str, table: Qualified | Subquery) -> Generator[Any]:
    """A cursor on the server; see `begin_reading`."""
    cursor = begin_reading(address, table)
    with server_errors(table), cursor.connection, cursor:
        yield cursor


def begin_reading(address: str, table: Qualified | Subquery) -> Any:
    """A cursor on the server, in a transaction that changes nothing and sees the source as it is at its first statement; whoever
    calls closes its connection. ADBC prepares what it executes, so that it is one statement."""
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
    """ADBC's exceptions may quote the address and cells: they end here."""
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
    """ADBC, and what it raises."""
    try:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise SourceError(
            "Postgres sources need adbc-driver-postgresql.", remedy="pip install 'release-pipeline[postgres]'"
        ) from None
    return dbapi, Error
