"""The people in each charged release of a population, or of all: the vault's records of people next to the releases' schemas."""

from __future__ import annotations

import hmac
import json
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from release_pipeline.store.database import Qualified, open_database, open_memory, read_batches, statement
from release_pipeline.store.files import locked

_TOGETHER = 1 << 18  # rows that are read together


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums of keyed hashes over the rows on people outside the releases' schemas, table by table. Only with the key can anyone
    change, add or remove a row with a hash and keep its sum; the sum after a release follows from that before it."""

    exposed: int
    identities: int
    charged: int

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, key: bytes) -> Sums:
        """Return the sums of everything that is there."""
        releases = connection.execute(statement("stages/list_exposed")).fetchall()
        return cls(
            exposed=sum(sum_exposed_in(connection, release, key) for (release,) in releases),
            identities=_sum_identities(connection, "main.identities", key),
            charged=sum_charged(connection, key),
        )


def sum_charged(connection: duckdb.DuckDBPyConnection, key: bytes) -> int:
    """Return the sum over the releases that are recorded as charged."""
    rows = connection.execute(statement("stages/list_charged")).fetchall()
    return sum(int.from_bytes(hmac.digest(key, json.dumps(row).encode(), "sha256")[:8], "big") for row in rows)


def sum_exposed_in(connection: duckdb.DuckDBPyConnection, release: str, key: bytes) -> int:
    """Return the part of the sum over who is in which release that belongs to one release."""
    own = hmac.digest(key, f"exposed in {release}".encode(), "sha256")
    return _sum_rows(connection, statement("stages/read_exposed_in"), own, release=release)


def add_identities(connection: duckdb.DuckDBPyConnection, key: bytes) -> int:
    """Record the hashes by which the people of this release (its table `people`) are found in other populations too, each once;
    returns the addition to their sum. In a population's first release they are all new: no copy of them is made."""
    if not connection.table("main.identities").shape[0]:
        connection.execute(statement("stages/insert_identities", table="people"))
        return _sum_identities(connection, "people", key)
    connection.execute(statement("stages/create_new_identities"))
    connection.execute(statement("stages/insert_identities", table="new_identities"))
    added = _sum_identities(connection, "new_identities", key)
    connection.execute(statement("stages/drop_new_identities"))
    return added


def _sum_identities(connection: duckdb.DuckDBPyConnection, table: str, key: bytes) -> int:
    own = hmac.digest(key, b"identities", "sha256")
    return _sum_rows(connection, statement("stages/read_identities", table=Qualified(table)), own)


def _sum_rows(connection: duckdb.DuckDBPyConnection, rows: str, key: bytes, **values: str) -> int:
    """Return the sum of keyed hashes of the rows that a query gives, all of as many blocks: CBC-MAC with AES."""
    from release_pipeline.store.people import PERSON, as_rows, encrypt  # PyArrow is large: only where it is used

    total = 0
    found = connection.sql(rows, params={"other": bytes(PERSON), **values}).to_arrow_reader(_TOGETHER)
    for batch in read_batches(found):
        code = np.zeros((len(batch), PERSON), dtype=np.uint8)
        for column in batch.columns:
            code = encrypt(code ^ as_rows(column), key)
        high, low = np.divmod(code.view(np.uint64)[:, 0].byteswap(), 1 << 32)
        total += (int(high.sum()) << 32) + int(low.sum())
    return total


def count_people(vault: Path, population: str) -> list[tuple[list[str], int]]:
    """Return lists of charged releases of a population, and how many people were in exactly those; none where it has no vault
    yet."""
    file = vault / f"{population}.duckdb"
    if not file.exists():
        return []
    with open_database(file, read_only=True) as connection:
        return connection.execute(statement("facts/count_people")).fetchall()


def count_in_both(one: Path, other: Path, *, wait: float) -> int:
    """Return how many people are in both of two populations, by the files of their vaults, among those identified by a column of
    the same name."""
    with open_database(one, read_only=True, wait=wait) as connection:
        with locked(other.parent):
            connection.execute(statement("schema/attach_other"), {"file": str(other)})
        return connection.execute(statement("facts/count_in_both")).fetchall()[0][0]


class Everybody:
    """The people in each charged release of several populations, in memory: nothing of it is stored or returned as a list."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, releases: Mapping[str, Mapping[str, bool]]) -> None:
        self._connection = connection
        self.releases = releases  # by population, with whether the people in each release are recorded

    def count_in_policies(self) -> list[tuple[str, str, str, str, int]]:
        """Return population and policy, another population and policy, and how many people are in both."""
        return self._connection.execute(statement("facts/count_in_policies")).fetchall()

    def count_in_populations(self) -> list[tuple[str, str, int]]:
        """Return two populations, and how many people are in both."""
        return self._connection.execute(statement("facts/count_in_populations")).fetchall()

    def sum_worst(self, losses: Mapping[tuple[str, str], Mapping[str, int | None]]) -> dict[str, int | None]:
        """Return the largest sum of one person for each kind of loss, when these are the losses of (population, release)."""
        self._connection.execute(statement("facts/create_losses"))
        for (population, release), parts in losses.items():
            for what, loss in parts.items():
                values = {"population": population, "release": release, "what": what, "loss": loss}
                self._connection.execute(statement("facts/insert_loss"), values)
        found = self._connection.execute(statement("facts/select_worst")).fetchall()
        return {what: None if worst is None else int(worst) for what, worst in found}


@contextmanager
def open_everybody(vault: Path, populations: Iterable[str]) -> Generator[Everybody]:
    """Yield the people of these populations."""
    releases: dict[str, dict[str, bool]] = {}
    with open_memory() as memory:
        memory.execute(statement("facts/create_everybody"))
        for population in populations:
            file = vault / f"{population}.duckdb"
            if file.exists():
                with open_database(file, read_only=True) as connection:
                    releases[population] = _copy_people(connection, memory, population)
        yield Everybody(memory, releases)


def _copy_people(source: duckdb.DuckDBPyConnection, memory: duckdb.DuckDBPyConnection, population: str) -> dict[str, bool]:
    """Copy the people of one population, batch by batch; returns its releases, and whether the people in each are recorded."""
    tables = {name for workspace, name in source.execute(statement("schema/list_tables")).fetchall() if workspace == "main"}
    if "exposed" not in tables:
        return {}
    people = source.sql(statement("facts/read_people_of_releases"), params={"population": population})
    memory.register("people", people.to_arrow_reader())
    memory.execute(statement("facts/insert_everybody"))
    memory.unregister("people")
    return dict(source.execute(statement("stages/list_charged")).fetchall())


# A vault's records of people, and the form of its notes.


class PeopleTables:
    """A vault's tables of people outside the schemas of its releases, which they outlive."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def has(self, table: str) -> bool:
        """Return whether the vault has this table outside the schemas; one that is read only, and just made, may not."""
        return True

    def charged(self) -> dict[str, bool]:
        """Return every release of the population that got as far as clusters, and whether the people in it are recorded."""
        return dict(self._connection.execute(statement("stages/list_charged")).fetchall()) if self.has("charged") else {}

    def people_note(self) -> dict[str, Any] | None:
        """Return the note on the people, or None if none was written."""
        if not self.has("people_notes"):
            return None
        return read_note(self._connection.execute(statement("stages/select_people_note")))

    def sum_charged(self, key: bytes) -> int:
        """Return the sum over the releases that are recorded as charged, as it is now."""
        if not self.has("charged"):
            return 0
        return sum_charged(self._connection, key)


def read_note(found: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    rows = found.fetchall()  # a result that is not read to its end blocks the connection
    return json.loads(rows[0][0]) if rows else None


def write_note(note: Mapping[str, Any]) -> str:
    return json.dumps(note, sort_keys=True, separators=(",", ":"))
