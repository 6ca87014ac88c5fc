"""The one door to DuckDB, and to the statements in sql/.

Finds and loads the statements in sql/: one per file, values as $parameters, names and counts as {{placeholders}}.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from traceback import walk_tb
from typing import Any, TypeAlias
from weakref import WeakSet

import duckdb

from release_pipeline.errors import (
    OutOfSpace,
    ReleasePipelineError,
    SourceError,
    StoreBusy,
    StoreError,
    disk_full,
    memory_full,
    spill_full,
)
from release_pipeline.store.files import locked

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}")


class Qualified(str):
    """A name with its schema: each part between dots is quoted separately."""

    __slots__ = ()


class Subquery(str):
    """A query from a policy, used in brackets in place of a table."""

    __slots__ = ()


class Part(str):
    """A part of a statement that is made only from names, numbers and parameters: it is inserted unchanged."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """A macro applied to a column, or to another macro of it."""

    macro: str
    to: str | Applied


Identifier: TypeAlias = str | Applied | int  # a whole number is inserted unchanged


def statement(name: str, **identifiers: Identifier | Sequence[Identifier]) -> str:
    """Return the statement in sql/`name`.sql with its {{placeholders}} replaced by quoted identifiers; all of them, and no
    other.

    A sequence of names becomes a list with commas; an applied macro has its column in brackets.
    """
    text = _load(name)
    wanted = set(_PLACEHOLDER.findall(text))
    if wanted != set(identifiers):
        raise ValueError(f"sql/{name}.sql has the placeholders {sorted(wanted)}, given were {sorted(identifiers)}")
    return _PLACEHOLDER.sub(lambda match: _quote(identifiers[match[1]]), text)


def quote_identifier(name: str) -> str:
    """Return `name` as an identifier of DuckDB or Postgres; it may have any characters."""
    return '"' + name.replace('"', '""') + '"'


def _quote(names: Identifier | Sequence[Identifier]) -> str:
    if isinstance(names, int | Part):
        return str(names)
    if isinstance(names, Applied):
        return f"{quote_identifier(names.macro)}({_quote(names.to)})"
    if isinstance(names, Subquery):
        return f"(\n{names}\n) AS delivered"  # on separate lines: it may end in a comment
    if isinstance(names, Qualified):
        return ".".join(quote_identifier(part) for part in names.split("."))
    return quote_identifier(names) if isinstance(names, str) else ", ".join(_quote(name) for name in names)


@lru_cache
def _load(name: str) -> str:
    return (_folder() / f"{name}.sql").read_text(encoding="utf-8")


@lru_cache
def _folder() -> Path:
    """Return sql/ inside the installed package, or at the top of the checkout for an editable install."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "sql"
    return inside if inside.is_dir() else package.parent / "sql"


# The only access to DuckDB: short connections, private files, waiting for a lock, and errors without cells. One process writes a
# DuckDB file at a time and a second cannot even read it meanwhile, so a process that finds it locked waits a while. But DuckDB
# reads the headers, which say where everything is, before it locks the file: a process that got the lock then would go on from
# that older state, and what another process wrote and closed in between would be lost. So opening, closing and replacing are one
# at a time within a folder. DuckDB's exceptions quote lines and cells, so none of them leaves this folder: they become our own
# errors.


WAIT_SECONDS = 30.0
_HEADERS = 3 * 4096  # bytes
_NO_SPACE = re.compile(r"no space left|disk quota exceeded|file too large", re.IGNORECASE)
_NO_SPILL = re.compile(r"max_temp_directory_size|duckdb_temp_[^\n]*(no space left|quota exceeded|too large)", re.IGNORECASE)
# Of a new file: every column of every small table takes a block at least, and every block of a large one some memory of its own,
# and time where memory is short.
_SMALL_BLOCKS, LARGE_BLOCKS = 16 << 10, 256 << 10  # bytes
_OWN = (UnicodeDecodeError, RecursionError)  # of Python; the second of what is nested beyond measure
Config: TypeAlias = dict[str, str | bool | int | float | list[str]]
_CONFIG: Config = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "preserve_insertion_order": "true",
    "default_block_size": str(_SMALL_BLOCKS),  # a file that was made with others keeps them until it is written again
}


@contextmanager
def open_memory() -> Generator[duckdb.DuckDBPyConnection]:
    """Yield a database in memory that never spills to disk."""
    connection = duckdb.connect(":memory:", config={**_CONFIG, "temp_directory": ""})
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def open_delivered(path: Path, table: str, *, memory: int | None = None) -> Generator[duckdb.DuckDBPyConnection]:
    """Yield a DuckDB file that people deliver, for reading `table`; it can reach no other file. Raises `SourceError` for a view.
    `memory`: the bytes that DuckDB may take; it never spills to disk."""
    with source_errors(path):
        connection = duckdb.connect(str(path), read_only=True, config={**_CONFIG, "temp_directory": ""})
    try:
        with source_errors(path):
            if memory is not None:  # set later, since all connections to one file must be opened with the same configuration
                connection.execute(statement("in_place/use_memory", bytes=memory))
            connection.execute(statement("stages/drop_external_access"))
            *schema, name = table.split(".")
            values = {"schema": ".".join(schema), "table": name}
            if not connection.execute(statement("stages/find_base_table"), values).fetchall():
                what = f"it has no table '{table}'. A view is not read: it could show other data than the file has."
                raise SourceError(what, where=str(path), remedy="Deliver a table, by CREATE TABLE ... AS SELECT.")
            yield connection
    finally:
        connection.close()


@contextmanager
def open_database(
    path: Path,
    *,
    read_only: bool = False,
    wait: float = WAIT_SECONDS,
    memory: int | None = None,
    blocks: int = _SMALL_BLOCKS,
) -> Generator[duckdb.DuckDBPyConnection]:
    """The database at `path`; waits up to `wait` seconds while another process has it. With `memory` it takes at most so many
    bytes, as far as DuckDB counts them, and goes on on disk, next to the file. `blocks`: their bytes, where the file is new.

    The file, its log and its spilled pages are only for the owner (0600, in a folder of 0700), whatever the umask.
    """
    with _private_umask():
        config = {**_CONFIG, "default_block_size": str(blocks)}
        if memory is not None:
            config["memory_limit"] = f"{memory // (1 << 20)}MiB"
        connection = _connect(path, read_only=read_only, wait=wait, config=config)
        try:
            with private_errors(path):
                yield connection
        finally:
            with locked(path.parent):
                connection.close()


def remove_spilled(file: Path) -> None:
    """Remove what DuckDB spilled next to a database and a killed process left; the caller has the file's lock."""
    shutil.rmtree(file.with_name(f"{file.name}.tmp"), ignore_errors=True)


def replace_database(path: Path, by: Path) -> None:
    """Put another file in place of a database that the caller has open."""
    with locked(path.parent):
        by.replace(path)


_UMASK = Lock()
_umasked: list[int] = []  # the umask before, once for each open database of any thread: the first is the one to restore


@contextmanager
def _private_umask() -> Generator[None]:
    """Make the files that DuckDB writes during the block private to the owner. The umask is the process's: the last to leave
    restores it."""
    with _UMASK:
        _umasked.append(os.umask(0o077))
    try:
        yield
    finally:
        with _UMASK:
            first = _umasked[0]
            _umasked.pop()
            if not _umasked:
                os.umask(first)


WITH_MACROS = WeakSet[duckdb.DuckDBPyConnection]()  # the connections that have the macros of `raw`; a rollback takes them away


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Generator[None]:
    """Run the block in a transaction, all or nothing: it is rolled back when the block raises."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        with suppress(duckdb.Error):  # DuckDB itself may have given it up: the first error is reported, not this one
            connection.rollback()
        WITH_MACROS.discard(connection)
        raise


@contextmanager
def private_errors(path: Path | str, *, error: type[ReleasePipelineError] = StoreError, remedy: str = "") -> Generator[None]:
    """Turn exceptions of DuckDB and Arrow, which quote the data, into our own errors with at most a line number."""
    try:
        yield
    except (*_theirs(), RuntimeError, MemoryError, UnicodeDecodeError) as caught:
        if not isinstance(caught, (*_theirs(), *_OWN)) and not _is_of_a_store(caught):
            raise  # an error of a computation while a database is open is no fault of the database
        if isinstance(caught, duckdb.InterruptException) or (type(caught) is RuntimeError and str(caught) == "Query interrupted"):
            raise KeyboardInterrupt from None
        full = _read_out_of_space(caught, str(path))
        what = _describe(caught)
        _blank(caught)
        raise full or error(what, where=str(path), remedy=remedy) from None


def read_batches(reader: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches that DuckDB hands over as Arrow's. Arrow reports DuckDB's failures in between as errors of the system,
    with cells in them: they become DuckDB's again."""
    try:
        yield from reader
    except OSError as caught:
        if caught.errno is not None:
            raise
        what = str(caught)
        _blank(caught)
        kinds = {"INTERRUPT": duckdb.InterruptException, "Out of Memory": duckdb.OutOfMemoryException}
        raise next((kind for name, kind in kinds.items() if what.startswith(name)), duckdb.Error)(what) from None


@contextmanager
def source_errors(path: Path | str) -> Generator[None]:
    """Turn exceptions about a source that people deliver into our own errors, without the data that they quote."""
    with private_errors(path, error=SourceError, remedy="Deliver it again, or repair it."):
        yield


def _connect(path: Path, *, read_only: bool, wait: float, config: Config) -> duckdb.DuckDBPyConnection:
    deadline, pause = time.monotonic() + wait, 0.02
    while True:
        try:
            with locked(path.parent):
                if is_unfinished(path) and not read_only:  # the process that began it died: a live one would have this lock
                    path.unlink()
                return duckdb.connect(str(path), read_only=read_only, config=config)
        except duckdb.IOException as caught:
            if (full := _read_out_of_space(caught, str(path))) is not None:
                raise full from None
            if "lock" not in str(caught).lower():
                raise StoreError("the database cannot be opened.", where=str(path)) from None
            if time.monotonic() > deadline:
                raise StoreBusy(
                    "another process is working with this database.", where=str(path), remedy="Wait for it, then try again."
                ) from None
        except duckdb.Error as caught:
            raise _read_out_of_space(caught, str(path)) or StoreError("the database cannot be opened.", where=str(path)) from None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.5)


def is_unfinished(path: Path) -> bool:
    """Return whether a database file has less than the headers that DuckDB begins one with: nothing can have been stored in
    it."""
    return path.is_file() and path.stat().st_size < _HEADERS


def _blank(caught: BaseException) -> None:
    """Remove the quoted cells from an exception that stays reachable as the context of the one that replaces it."""
    caught.args = ()
    if isinstance(caught, UnicodeDecodeError):
        caught.object = b""


def _read_out_of_space(caught: Exception, where: str) -> OutOfSpace | None:
    """Return the error of a full disk or memory, if the exception is about that; else None."""
    if _NO_SPILL.search(str(caught)):
        return spill_full()
    if _NO_SPACE.search(str(caught)):
        return disk_full(where)
    return memory_full(where) if isinstance(caught, duckdb.OutOfMemoryException | MemoryError) else None


def _theirs() -> tuple[type[Exception], ...]:
    """Return the exceptions of DuckDB, and of Arrow if it was imported: a registry does without, and then Arrow can raise
    none."""
    arrow = sys.modules.get("pyarrow")
    return (duckdb.Error,) if arrow is None else (duckdb.Error, arrow.ArrowException)


def _is_of_a_store(caught: BaseException) -> bool:
    """Return whether an exception was raised by a library called from this folder, or by this folder, and not by the caller's
    computation."""
    *_, (frame, _) = walk_tb(caught.__traceback__)
    return Path(frame.f_code.co_filename).parent == Path(__file__).parent


def _describe(caught: Exception) -> str:
    text = str(caught)
    text, _, quoted = text.partition("Original Line:")  # the quoted part may have any text
    text += quoted.partition("\n")[2]
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None:
        return f"it cannot be read or written ({type(caught).__name__})."
    if "Number of Columns" in text:
        return f"line {line[1]} cannot be read: it has another number of fields than the header."
    if "unterminated quote" in text:
        return f"line {line[1]} cannot be read: a quoted field does not end."
    if "unicode" in text or "utf-8" in text:
        return f"line {line[1]} cannot be read: it is not UTF-8 text."
    return f"line {line[1]} cannot be read: it does not follow the CSV format."
