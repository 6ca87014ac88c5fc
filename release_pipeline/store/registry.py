"""Between the confidential and the public side: everything that happened to a release, as a chain of events. No microdata.

An event is canonical JSON that names its number, the hash of the one before and what happened; its own hash is over all of that.
So anyone who has the last hash can verify the whole chain. Every event also carries a seal under the vault's key, so that events
cannot be changed, inserted or appended with only the registry. The head that the vault keeps shows when the last ones are
missing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any, BinaryIO, Protocol, TypeAlias

import duckdb

from release_pipeline.errors import StoreError
from release_pipeline.formats.versions import SITE
from release_pipeline.policy.documents import Plain
from release_pipeline.store.database import is_unfinished, open_database, statement, transaction
from release_pipeline.store.frozen import FrozenDict, freeze
from release_pipeline.store.registry_server import Server, ServerConnection

_PIECE = 1 << 18  # bytes
TABLES = ("events", "head", "budgets")
CLOCK_SLACK = 60.0  # seconds that the clocks of two machines may differ
BEGIN = ""  # the hash before the first event
FORMAT = "format"  # the first event, which names the format of all


class RegistryChanged(StoreError):
    """The registry is not as it was written."""


@dataclass(frozen=True, slots=True, order=True)
class ReleaseId:
    """policy/partition/rN."""

    policy: str
    release: str
    revision: int = 1

    def __str__(self) -> str:
        return f"{self.policy}/{self.release}/r{self.revision}"

    @property
    def workspace(self) -> str:
        """Return its schema in the vault. DuckDB's names ignore case and these do not, so a hash distinguishes A from a."""
        return f"{self} {hashlib.sha256(str(self).encode()).hexdigest()[:12]}"

    @property
    def file_name(self) -> str:
        """Return its name as the name of one file."""
        return str(self).replace("/", "~")

    @property
    def next(self) -> ReleaseId:
        """Return the revision after it."""
        return ReleaseId(self.policy, self.release, self.revision + 1)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: what, when, to which release if to one, and its content."""

    number: int
    kind: str
    noted: str
    release: ReleaseId | None
    _content: Mapping[str, Any] = field(repr=False)
    hash: str
    body: str = ""  # the canonical JSON that the hash is of

    @property
    def content(self) -> Mapping[str, Any]:
        """Return its content, which cannot be changed: a process reads an event once, for all callers. It is frozen at the first
        request, since most events of a long history are never asked for."""
        if not isinstance(self._content, FrozenDict):
            object.__setattr__(self, "_content", freeze(self._content))
        return self._content

    @property
    def moment(self) -> datetime:
        """Return when it was recorded, by the clock of the machine."""
        return datetime.fromisoformat(self.noted)


class RegistryAnchor(Protocol):
    """The confidential side's record of the registry: the key of its seals, and the last event that was written."""

    def seal(self, digest: str) -> str:
        """Return the seal of an event's hash."""
        ...

    def has_records(self) -> bool:
        """Return whether the vault holds anything that a registry must know of."""
        ...

    def read(self) -> tuple[int, str] | None:
        """Return number and hash, or None if none was ever recorded."""
        ...

    def write(self, number: int, digest: str) -> None:
        """Record number and hash of the last event."""
        ...


class Database(Protocol):
    """A connection in whose transaction the registry is written: DuckDB's, or one to a server."""

    def execute(self, text: str, values: Any = ..., /) -> Any:
        """Execute a statement, and return its result, with `fetchall`."""
        ...


_ONE_AT_A_TIME = RLock()


class Registry:
    """An open registry: its events, verified, and a way to add to them inside the one transaction that it is opened with."""

    def __init__(
        self,
        connection: Database | None,
        events: list[Event],
        anchor: RegistryAnchor,
        tool: str | None = None,
        budgets: Sequence[Budget] = (),
    ) -> None:
        self._connection = connection
        self._events = events
        self._anchor = anchor
        self._tool = tool
        self.added: list[Row] = []  # as the database has them
        self.budgets = budgets  # when the registry was opened

    @property
    def events(self) -> tuple[Event, ...]:
        """Return everything that happened, in order."""
        return tuple(self._events)

    @property
    def connection(self) -> Database:
        """Return the connection of the transaction, for what must be written together with an event."""
        if self._connection is None:
            raise StoreError("the registry was opened for reading.")
        return self._connection

    def add(self, kind: str, release: ReleaseId | None = None, **content: Any) -> Event:
        """Append an event; the first of all comes after one that names the format, and the software that wrote it."""
        if self._tool is not None and not self._events and kind != FORMAT:
            site = secrets.token_hex(16)  # no two sites begin alike
            self.add(FORMAT, version=SITE.version, tool=self._tool, site=site)
        number, previous = len(self._events) + 1, _last_hash(self._events)
        noted = datetime.now(UTC).isoformat(timespec="seconds")
        named = None if release is None else [release.policy, release.release, release.revision]
        body = canonical_json(
            {"number": number, "previous": previous, "kind": kind, "noted": noted, "release": named, "content": content}
        )
        event = _read_event(number, body, json.loads(body))
        seal = self._anchor.seal(event.hash)
        values = {"number": number, "body": body, "hash": event.hash, "seal": seal}
        self.connection.execute(statement("ledger/insert_event"), values)
        self.added.append((number, body, event.hash, seal))
        self.connection.execute(statement("ledger/move_head"), {"number": number, "previous": number - 1, "hash": event.hash})
        self._events.append(event)
        return event

    def copy_into(self, connection: Database) -> None:
        """Write all events that it had when it was opened into a database with its tables, and nothing in them."""
        for event in self._events:
            row = {"number": event.number, "body": event.body, "hash": event.hash, "seal": self._anchor.seal(event.hash)}
            connection.execute(statement("ledger/insert_event"), row)
        head = {"number": len(self._events), "previous": 0, "hash": _last_hash(self._events)}
        connection.execute(statement("ledger/move_head"), head)
        for population, unit, spent, cap in self.budgets:
            row = {"population": population, "unit": unit, "spent": spent, "cap": cap}
            connection.execute(statement("ledger/insert_budget"), row)


@contextmanager
def open_registry(
    path: Path | Server, *, anchor: RegistryAnchor, read_only: bool = False, tool: str | None = None
) -> Generator[Registry]:
    """Yield the registry at `path`, in one transaction; raises `RegistryChanged` unless it is, event by event, what was
    written, and `FormatNewer` when a later version wrote to it. `tool`: the software, recorded with the format when it begins
    the registry.

    It is made when it does not exist; for reading it is then empty. One process at a time writes, by DuckDB's lock, or one of the
    server; between threads a lock of ours is needed, since two transactions there would both find room under the cap.
    """
    with _ONE_AT_A_TIME:
        if isinstance(path, Server):
            with _open_on_server(path, anchor=anchor, read_only=read_only, tool=tool) as registry:
                yield registry
            return
        known_head, records = anchor.read(), anchor.has_records()  # first: another process may be making it just now
        if read_only and (not path.exists() or is_unfinished(path)):  # another process is making it, or died doing so
            _compare_head(path, [], known_head, records=records)
            yield Registry(None, [], anchor)
            return
        if read_only and _verified.path == path and _verified.is_all_of(path, _read_file(path), anchor):
            _compare_head(path, _verified.events, known_head, records=records)
            yield Registry(None, list(_verified.events), anchor, budgets=_verified.budgets)
            return
        with ExitStack() as after, open_database(path, read_only=read_only) as connection:
            content = _read_file(path, until=after)
            known_file = _verified.is_all_of(path, content, anchor)
            begun = known_file or _check_tables(path, connection)
            if not (begun or read_only):
                if anchor.read() is None and not anchor.has_records():
                    anchor.write(0, BEGIN)  # from now on a missing head shows that somebody removed it
                with transaction(connection):
                    make_tables(connection)
            with transaction(connection):
                if known_file:
                    events = list(_verified.events)
                else:
                    events = _load_events(path, connection, anchor, content) if begun or not read_only else []
                _compare_head(path, events, anchor.read(), records=anchor.has_records())
                registry = Registry(None if read_only else connection, events, anchor, tool, _verified.budgets if events else ())
                known = len(events)
                yield registry
            if read_only:
                return
            head = (len(registry.events), _last_hash(registry.events))
            if head[0] > known and connection.execute(statement("ledger/select_head")).fetchall() != [head]:
                raise StoreError("the database gave up what was to be written; nothing was.", where=str(path))
            if anchor.read() != head:  # as after an event, or when the writer of the last one was stopped before this
                anchor.write(*head)  # still under the lock, so that it never goes back
            if head[0] > known:
                _keep_written(path, connection, registry, after)


@contextmanager
def _open_on_server(server: Server, *, anchor: RegistryAnchor, read_only: bool, tool: str | None) -> Generator[Registry]:
    """Yield the registry of a server, in one transaction. The vault's head follows the commit, so it is at most as far as the
    registry: a process that dies between them leaves it behind, and the next writer moves it."""
    head, records = anchor.read(), anchor.has_records()  # before a reader's moment: others go on meanwhile
    with server.open(read_only=read_only) as connection:
        begun = _has_all_tables(server, connection.list_tables())
        if not (begun or read_only):
            if anchor.read() is None and not anchor.has_records():
                anchor.write(0, BEGIN)
            make_tables(connection)
        events = _load_later_events(server, connection, anchor) if begun else []
        _compare_head(server, events, head if read_only and head is not None else anchor.read(), records=records)
        registry = Registry(None if read_only else connection, events, anchor, tool, _verified.budgets if events else ())
        known = len(events)
        yield registry
        last = (len(registry.events), _last_hash(registry.events))
        if last[0] > known and connection.execute(statement("ledger/select_head")).fetchall() != [last]:
            raise StoreError("somebody else wrote to the registry meanwhile; nothing was noted.", where=str(server))
    if not read_only and anchor.read() != last:
        anchor.write(*last)


def make_tables(connection: Database) -> None:
    """Make the tables of a registry that has no event yet."""
    is_on_server = isinstance(connection, ServerConnection)
    for name in ("events", "head", *(("budgets_in_postgres", "order_in_postgres") if is_on_server else ("budgets",))):
        connection.execute(statement(f"ledger/create_{name}"))
    connection.execute(statement("ledger/insert_head"))


def canonical_json(content: Any) -> str:
    """Return the one text of `content`: keys in order, no spaces, ASCII, no float."""
    _refuse_floats(content)
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def hash_of_json(content: Any) -> str:
    """Return the SHA-256 of that text, in hex, which people sign for a document."""
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _refuse_floats(content: Plain) -> None:
    if isinstance(content, float):
        raise TypeError("a float has no canonical text: write it as one")
    if isinstance(content, Mapping):
        for name, part in content.items():
            if not isinstance(name, str):
                raise TypeError("a key is a text")
            _refuse_floats(part)
    elif isinstance(content, list | tuple):
        for part in content:
            _refuse_floats(part)


def _check_tables(path: Path, connection: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the registry was begun; raises if it has some tables and not its own. DuckDB takes long to list what it has,
    so tables are only listed where one is missing."""
    with suppress(duckdb.CatalogException):
        connection.execute(statement("ledger/find_tables"))
        return True
    return _has_all_tables(path, {name for (name,) in connection.execute(statement("ledger/list_tables")).fetchall()})


def _has_all_tables(path: Path | Server, found: set[str]) -> bool:
    if found and not found >= set(TABLES):
        raise _changed(path, "it is not a registry, or its tables were removed")
    return bool(found)


Row: TypeAlias = tuple[int, str, str, str]  # number, body, hash and seal of an event, as the database has them
Budget: TypeAlias = tuple[str, str, int, int]  # a population, the unit of its cap, what is spent of it, and the cap


@dataclass(frozen=True, slots=True)
class _Verified:
    """The rows of a registry that this process has verified, their events, the budgets, and the file that had just these."""

    path: Path | Server
    rows: Sequence[Row] = ()
    events: Sequence[Event] = ()
    content: bytes = b""
    budgets: Sequence[Budget] = ()

    def begins(self, path: Path | Server, rows: Sequence[Row], anchor: RegistryAnchor) -> bool:
        """Return whether these rows begin with the verified ones, byte for byte, and the key of their seals is still the same."""
        return self.path == path and bool(self.rows) and rows[: len(self.rows)] == self.rows and self._has_key(anchor)

    def is_all_of(self, path: Path, content: bytes, anchor: RegistryAnchor) -> bool:
        """Return whether this content of the file is, byte for byte, the one that the verified rows were read from: then nothing
        in it is unverified. A run asks often, and asking the database each time takes it seconds."""
        return self.path == path and bool(self.rows) and self.content == content != b"" and self._has_key(anchor)

    def _has_key(self, anchor: RegistryAnchor) -> bool:
        *_, digest, seal = self.rows[-1]
        return hmac.compare_digest(seal.encode(), anchor.seal(digest).encode())


_verified = _Verified(Path())  # of the registry that was opened last, under the lock of `open_registry`


def _keep(path: Path | Server, connection: Database, rows: Sequence[Row], events: Sequence[Event], content: bytes = b"") -> None:
    """Remember what was verified, or written by this process after that; `content`: all of the file, read under its lock, or
    nothing where it has a log next to it."""
    global _verified
    budgets = connection.execute(statement("ledger/list_budgets")).fetchall()
    _verified = _Verified(path, rows, tuple(events), content, budgets)


def _keep_written(path: Path, connection: duckdb.DuckDBPyConnection, registry: Registry, after: ExitStack) -> None:
    """Remember what was written, when it reads back as it was: then the next opening need not read it again."""
    known = {"known": len(registry.events) - len(registry.added)}
    with suppress(duckdb.Error):  # what is committed is in the log, and stays
        if connection.execute(statement("ledger/list_later_events"), known).fetchall() == registry.added:
            connection.execute(statement("schema/checkpoint"))  # as closing would: so the file is what it stays
            rows = [*_verified.rows, *registry.added]
            _keep(path, connection, rows, registry.events, _read_file(path, until=after))


def _load_events(path: Path, connection: duckdb.DuckDBPyConnection, anchor: RegistryAnchor, content: bytes) -> list[Event]:
    """Return every event, when all are as they were written. Rows that this process has verified before are compared with what it
    read then, row by row or all of the file, and only later ones are verified: so memory never supplies an event that the
    database lacks today."""
    rows: list[Row] = connection.execute(statement("ledger/list_events")).fetchall()
    events = _verify_rows(path, connection, rows, anchor)
    _keep(path, connection, rows, events, content)
    return events


def _load_later_events(server: Server, connection: Database, anchor: RegistryAnchor) -> list[Event]:
    """Return every event of a server's registry. Of those that this process has verified only the last is read again, and the
    head: a long history does not come over the network each time. The first opening reads all of it."""
    text, known = statement("ledger/list_later_events"), list(_verified.rows) if _verified.path == server else []
    rows: list[Row] = known[:-1] + connection.execute(text, {"known": max(len(known) - 1, 0)}).fetchall()
    if not _verified.begins(server, rows, anchor):
        rows = connection.execute(text, {"known": 0}).fetchall()
    events = _verify_rows(server, connection, rows, anchor)
    _keep(server, connection, rows, events)
    return events


def _verify_rows(path: Path | Server, connection: Database, rows: list[Row], anchor: RegistryAnchor) -> list[Event]:
    """Return the events that these rows are, when all are as they were written, and the last one is the head's."""
    last = connection.execute(statement("ledger/select_head")).fetchall()
    events = list(_verified.events) if _verified.begins(path, rows, anchor) else []
    for expected, (number, body, digest, seal) in enumerate(rows[len(events) :], start=len(events) + 1):
        try:
            payload = json.loads(body)
            event = _read_event(expected, body, payload)
            chained = (expected, expected, _last_hash(events), event.hash)
            is_chained = (number, payload["number"], payload["previous"], digest) == chained
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _changed(path, f"event {expected} was changed") from None
        if not is_chained:
            raise _changed(path, f"event {expected} was changed, or one before it is missing")
        if not hmac.compare_digest(str(seal).encode(), anchor.seal(digest).encode()):
            raise _changed(path, f"event {expected} was not written by this site: its seal is not of the vault's key")
        if event.kind == FORMAT:
            SITE.check(event.content["version"], where=str(path))  # later parts may have any form
        events.append(event)
    if last != [(len(events), _last_hash(events))]:
        raise _changed(path, f"events after {len(events)} are missing, or were added by somebody else")
    return events


def _read_file(path: Path, *, until: ExitStack | None = None) -> bytes:
    """Return all of a registry's file, or nothing if it has a log next to it or does not exist. Closing a file frees every lock
    that this process has on it, those of DuckDB too: where it has the database open, the file is closed after that (`until`)."""
    if path.with_name(f"{path.name}.wal").exists():  # a commit is not in the file itself yet
        return b""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return b""
    if until is None:
        with file:
            return _read_like(file, _verified.content)
    until.callback(file.close)
    return _read_like(file, _verified.content)


def _read_like(file: BinaryIO, known: bytes) -> bytes:
    """Return all of a file. If it equals `known`, which is compared piece by piece, that very object is returned, since a run
    asks often."""
    compared = 0  # bytes
    while piece := file.read(_PIECE):
        if not known.startswith(piece, compared):
            break
        compared += len(piece)
    else:
        if known and compared == len(known):
            return known
    file.seek(0)
    return file.read()


def _last_hash(events: Sequence[Event]) -> str:
    return events[-1].hash if events else BEGIN


def _compare_head(path: Path | Server, events: Sequence[Event], known: tuple[int, str] | None, *, records: bool) -> None:
    if known is None:
        if events or records:
            raise _changed(path, "the vault does not say which event was the last (registry.head), and there were some")
        return
    number, digest = known
    if number > len(events):
        raise _changed(
            path, f"the vault knows of {number} events, and here are {len(events)}: it was removed, or an older copy put back"
        )
    if number and events[number - 1].hash != digest:
        raise _changed(path, f"event {number} is not the one that the vault knows of: the chain was rewritten")


def _changed(path: Path | Server, what: str) -> RegistryChanged:
    return RegistryChanged(
        f"{what}.",
        where=str(path),
        remedy="Restore the registry as it was last; until then nothing is charged, and no noise is drawn.",
    )


def _read_event(number: int, body: str, payload: Mapping[str, Any]) -> Event:
    """Return the event with this body, which reads as the payload."""
    content: object = payload["content"]
    if not isinstance(content, Mapping):
        raise TypeError("what belongs to an event is an object")
    release = None if payload["release"] is None else ReleaseId(*payload["release"])
    digest = hashlib.sha256(body.encode()).hexdigest()
    return Event(number, payload["kind"], payload["noted"], release, payload["content"], digest, body)


RESTORING, RESTORED = "restoring", "restored"


def is_restore_over(events: Sequence[Event], head: tuple[int, str]) -> bool:
    """Return whether a backup was restored that replaces the registry with this last event: no event came to it since it was
    read."""
    last = {"event": head[0], "hash": head[1]}
    return any(event.kind == RESTORING and event.content.get("replaces") == last for event in events)
