"""A registry in Postgres, which several hosts share: connections for one transaction, and one writer at a time among all hosts.

psycopg2's exceptions may quote the address and rows, so none of them leaves this file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import unquote

from release_pipeline.errors import StoreBusy, StoreError
from release_pipeline.store.database import WAIT_SECONDS, statement

_T = TypeVar("_T")
_ADDRESS = re.compile(r"(postgres(?:ql)?:/{2})(?:([^:@/?]+)(:\$\{(?:[A-Za-z_]\w*|file:/[^{}]+)\})?@)?([^@]*)")
_NUMERIC = (1700,)  # the number of that type in Postgres
_CHECK, _BUSY = "23514", "55P03"  # SQLSTATE of a check that failed, and of a lock that did not come
_CONNECT = {
    "target_session_attrs": "read-write",  # a standby may be behind
    "application_name": "release-pipeline",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}


def split_address(text: str) -> tuple[str, str, str] | None:
    """Return an address of a Postgres server up to its password, the name of the password (empty without one), and the rest; None
    where it is no such address, or has the password itself."""
    match = _ADDRESS.fullmatch(text) if text.isprintable() else None
    if match is None or "password" in unquote(match[4]).lower():
        return None
    scheme, user, password, rest = match.groups(default="")
    return f"{scheme}{user}", password[3:-1], f"@{rest}" if user else rest


class CheckFailed(StoreError):
    """The server refused a row that breaks the check of its table."""


@dataclass(frozen=True, slots=True)
class Server:
    """The place of a registry in Postgres. `name`: its address without the password, for people; `address`: with it."""

    name: str
    address: str = field(repr=False)

    def __str__(self) -> str:
        return self.name

    def exists(self) -> bool:
        """Return whether a registry was begun there."""
        with self.open(read_only=True) as connection:
            return bool(connection.list_tables())

    @contextmanager
    def open(self, *, read_only: bool = False) -> Generator[ServerConnection]:
        """Yield one transaction, committed when the block ends and rolled back when it raises. A reader sees the registry as it
        was at one moment. There is one writer at a time: it waits for the others, and then sees all that they committed."""
        connection = _connect(self, read_only=read_only)
        try:
            connection.execute(statement("ledger/use_server"), {"wait": f"{WAIT_SECONDS:.0f}s"})
            if not read_only:
                connection.execute(statement("ledger/begin_writing"))
            yield connection
            connection.commit()
        finally:
            connection.close()


class ServerConnection:
    """A connection with the interface of DuckDB's."""

    def __init__(self, server: Server, connection: Any, error: type[Exception]) -> None:
        self._server = server
        self._connection = connection
        self._error = error

    def execute(self, text: str, values: Mapping[str, Any] | None = None) -> Any:
        """Return the cursor of a statement with $parameters."""
        return self._ask(lambda: self._execute(text, values))

    def list_tables(self) -> set[str]:
        """Return the existing tables of a registry."""
        return {name for (name,) in self.execute(statement("ledger/find_tables_in_postgres")).fetchall()}

    def commit(self) -> None:
        """Commit what was written, on the server's disk for good."""
        self._ask(self._connection.commit, is_commit=True)

    def close(self) -> None:
        """Roll back what is not committed."""
        self._connection.close()

    def _execute(self, text: str, values: Mapping[str, Any] | None) -> Any:
        cursor = self._connection.cursor()
        cursor.execute(_name_parameters(text), values or {})
        return cursor

    def _ask(self, work: Callable[[], _T], *, is_commit: bool = False) -> _T:
        try:
            return work()
        except self._error as caught:
            code: str | None = getattr(caught, "pgcode", None)
        raise self._explain(code, is_commit=is_commit)  # outside of the block: nothing leads to the exception of psycopg2

    def _explain(self, code: str | None, *, is_commit: bool) -> StoreError:
        where = self._server.name
        if code == _CHECK:
            return CheckFailed("the server refused a row that breaks a check.", where=where)
        if code == _BUSY:
            what = "another host or process is working with the registry."
            return StoreBusy(what, where=where, remedy="Wait for it, then try again.")
        if code is not None and not self._connection.closed:
            what = f"the server of the registry refused a statement (SQLSTATE {code})."
            return StoreError(what, where=where, remedy="Nothing was noted. The server's log says why.")
        unknown = " Nobody knows whether the last step was noted." if is_commit else " The last step was not noted."
        return StoreError(
            f"the connection to the server of the registry was lost.{unknown}",
            where=where,
            remedy="Give the same command again: it reads first what was noted, and charges nothing twice.",
        )


def _connect(server: Server, *, read_only: bool) -> ServerConnection:
    try:
        import psycopg2
        from psycopg2.extensions import new_type, register_type
    except ImportError:
        raise StoreError(
            "a registry in Postgres needs psycopg2.", where=server.name, remedy="pip install 'release-pipeline[postgres]'"
        ) from None
    try:
        connection = psycopg2.connect(server.address, **_CONNECT)
        level = "REPEATABLE READ" if read_only else "READ COMMITTED"  # a writer sees what was committed while it waited
        connection.set_session(isolation_level=level, readonly=read_only)
        register_type(new_type(_NUMERIC, "INTEGER", _read_integer), connection)
        return ServerConnection(server, connection, psycopg2.Error)
    except (psycopg2.Error, ValueError):
        pass
    raise StoreError(
        "the server of the registry cannot be reached, or refuses this account.",
        where=server.name,
        remedy="Check the address, the password and the server. Nothing was noted.",
    )


def _read_integer(text: str | None, _: object) -> int | None:
    return None if text is None else int(text)


@lru_cache
def _name_parameters(text: str) -> str:
    """Return a statement whose $parameters are written as psycopg2 wants them."""
    return re.sub(r"\$([a-z_]+)", r"%(\1)s", text.replace("%", "%%"))
