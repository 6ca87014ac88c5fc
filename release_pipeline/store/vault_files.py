"""The file of a population's vault with the schemas of all its releases: to read, to lock, and to remove some."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from release_pipeline.errors import StoreError
from release_pipeline.store.database import LARGE_BLOCKS, open_database, remove_spilled, replace_database, statement
from release_pipeline.store.exposed import PeopleTables, Sums
from release_pipeline.store.files import make_vault, sync
from release_pipeline.store.vault import VAULT_LOCK, ReleaseWorkspace


class VaultReader(PeopleTables):
    """The vault of a population, read-only."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, vault: Path) -> None:
        super().__init__(connection)
        self._vault = vault
        self.tables = {(workspace, name) for workspace, name in connection.execute(statement("schema/list_tables")).fetchall()}

    def has(self, table: str) -> bool:
        """Return whether the vault has this table outside the schemas of releases."""
        return ("main", table) in self.tables

    def sum_people(self, key: bytes) -> Sums | None:
        """Return the sums over all records of people; None where one of the tables is missing."""
        return Sums.of(self._connection, key) if all(map(self.has, ("exposed", "identities", "charged"))) else None

    def open_workspace(self, workspace: str) -> ReleaseWorkspace | None:
        """Return the workspace of a release, if it is there with its notes."""
        if (workspace, "notes") not in self.tables:
            return None
        self._connection.execute(statement("schema/use_release_schema", workspace=workspace))
        return ReleaseWorkspace(self._connection, self._vault)


@contextmanager
def open_vault(vault: Path, population: str, *, wait: float) -> Generator[VaultReader]:
    """Yield the vault of a population, whose file exists; no process writes to it meanwhile."""
    with VAULT_LOCK, open_database(vault / f"{population}.duckdb", read_only=True, wait=wait) as connection:
        yield VaultReader(connection, vault)


@contextmanager
def locked_vault(vault: Path, population: str) -> Generator[None]:
    """Hold the lock of a population's vault, so that no other process works with it meanwhile."""
    make_vault(vault)
    with VAULT_LOCK, open_database(vault / f"{population}.duckdb", blocks=LARGE_BLOCKS):
        yield


def prune_workspaces(file: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> list[str]:
    """Remove the releases' schemas that `choose` picks of those in a population's file, and return their names. The file is
    rewritten without them, spilled pages too, so that no file of the vault has their content. `choose` is asked under the lock
    of the file.

    The work is done in copies, and the file is replaced while its lock is held. If it is stopped anywhere, the old or the new
    file is there, whole, and the next call starts again.
    """
    first, second = (file.with_name(f".{file.name}.{step}") for step in ("without", "pruned"))
    with VAULT_LOCK, open_database(file, blocks=LARGE_BLOCKS) as locked:
        for left in [path for step in (first, second) for path in file.parent.glob(f"{step.name}*")]:
            left.unlink()
        remove_spilled(file)
        workspaces = [name for (name,) in locked.execute(statement("schema/list_release_schemas")).fetchall()]
        chosen = [workspace for workspace in choose(workspaces) if workspace in workspaces]
        if not chosen:
            return []
        _copy_database(locked, first)
        with open_database(first) as copied:
            for workspace in chosen:
                copied.execute(statement("schema/drop_release_schema", workspace=workspace))
            left_over = _count_everything(copied)
            _copy_database(copied, second)  # once more: what was dropped is still in the pages of the first
        with open_database(second, read_only=True) as copied:
            if _count_everything(copied) != left_over:
                raise StoreError("the copy without the removed tables is not complete; nothing was replaced.", where=str(file))
        locked.execute(statement("schema/checkpoint"))
        sync(second)
        replace_database(file, second)
        first.unlink()
        sync(file.parent)
    return chosen


def _copy_database(connection: duckdb.DuckDBPyConnection, into: Path) -> None:
    [(old,)] = connection.execute(statement("schema/select_database")).fetchall()
    new = f"new_{secrets.token_hex(8)}"  # no database is called like this
    connection.execute(statement("schema/attach_copy", copy=new), {"file": str(into)})
    connection.execute(statement("schema/copy_vault", vault=old, copy=new))
    connection.execute(statement("schema/detach_copy", copy=new))


def _count_everything(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], int]:
    """Return every table of the file, and how many rows it has."""
    tables = connection.execute(statement("schema/list_tables")).fetchall()
    return {
        (workspace, name): connection.execute(statement("schema/count_rows", workspace=workspace, table=name)).fetchall()[0][0]
        for workspace, name in tables
    }
