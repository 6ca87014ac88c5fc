"""Between the confidential and the public side: what was charged to whom, and the states of all releases. No microdata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

import duckdb

from release_pipeline.policy.loss import LOSSES, Loss
from release_pipeline.store.connections import open_database, transaction
from release_pipeline.store.sql import statement


@dataclass(frozen=True, slots=True)
class ReleaseId:
    """policy/partition/rN."""

    policy: str
    release: str
    revision: int = 1

    def __str__(self) -> str:
        return f"{self.policy}/{self.release}/r{self.revision}"

    @property
    def room(self) -> str:
        """Its schema in the vault. DuckDB's names ignore case and these do not, so a hash tells A from a."""
        return f"{self} {hashlib.sha256(str(self).encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Charge:
    """What one release costs at most, whom, and the keyed hash of the records that it is for."""

    id: ReleaseId
    population: str
    policy_hash: str
    source: str
    loss: Loss


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """The present state of a release, why, and the public facts of its candidate."""

    id: ReleaseId
    state: str
    reason: str
    policy_hash: str
    candidate_hash: str | None
    facts: Mapping[str, Any]
    noted: str


_ONE_AT_A_TIME = RLock()


class Registry:
    """An open registry, inside one transaction."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def charges(self, population: str | None = None) -> list[Charge]:
        """Every charge, or every one to a population, in the order in which they were made."""
        return [
            Charge(
                ReleaseId(row["policy"], row["release"], row["revision"]),
                row["population"],
                row["policy_hash"],
                row["source"],
                Loss(**{name: row[name] for name in LOSSES}),
            )
            for row in self._rows("ledger/list_charges", {})
            if population in (None, row["population"])
        ]

    def charge(self, charge: Charge) -> None:
        """Add a charge; there is no way to take one back."""
        values = {name: getattr(charge.loss, name) for name in LOSSES}
        self._connection.execute(
            statement("ledger/insert_charge"),
            {
                "population": charge.population,
                **_id(charge.id),
                "policy_hash": charge.policy_hash,
                "source": charge.source,
                **values,
                "noted": _now(),
            },
        )

    def states(self) -> list[ReleaseState]:
        """The present state of every release that has one."""
        return [
            ReleaseState(
                ReleaseId(row["policy"], row["release"], row["revision"]),
                row["state"],
                row["reason"],
                row["policy_hash"],
                row["candidate_hash"],
                json.loads(row["facts"]),
                row["noted"],
            )
            for row in self._rows("ledger/list_states", {})
        ]

    def set_state(
        self,
        release: ReleaseId,
        state: str,
        *,
        policy_hash: str,
        reason: str = "",
        candidate_hash: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Append a state."""
        self._connection.execute(
            statement("ledger/insert_state"),
            {
                **_id(release),
                "state": state,
                "reason": reason,
                "policy_hash": policy_hash,
                "candidate_hash": candidate_hash,
                "facts": json.dumps(facts or {}, sort_keys=True),
                "noted": _now(),
            },
        )

    def _rows(self, name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
        result = self._connection.execute(statement(name), dict(values))
        labels = [str(item[0]) for item in result.description or ()]
        return [dict(zip(labels, row, strict=True)) for row in result.fetchall()]


@contextmanager
def open_registry(path: Path) -> Iterator[Registry]:
    """The registry at `path`, made when it does not exist, in one transaction.

    One at a time: between processes DuckDB's lock sees to it, between the threads of one a lock of ours, for there two
    transactions would both see the cap not reached.
    """
    with _ONE_AT_A_TIME, open_database(path) as connection:
        connection.execute(statement("ledger/create_charges"))
        connection.execute(statement("ledger/create_states"))
        with transaction(connection):
            yield Registry(connection)


def _id(release: ReleaseId) -> dict[str, Any]:
    return {"policy": release.policy, "release": release.release, "revision": release.revision}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
