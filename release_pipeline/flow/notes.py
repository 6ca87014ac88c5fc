"""What the vault has of one release: its room, the notes of its stages, and whether they are still of the same thing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import pyarrow as pa

from release_pipeline.errors import Blocked, DataRefused, NotPassed, ReleasePipelineError, StoreError
from release_pipeline.flow.content import fingerprint
from release_pipeline.flow.record import ReleaseRecord
from release_pipeline.flow.reservation import next_revision
from release_pipeline.privacy.noise import Context
from release_pipeline.store.source import SourceDoor, find_source
from release_pipeline.store.vault import ReleaseRoom, open_room


@dataclass(frozen=True, slots=True)
class ReleaseNotes(ReleaseRecord):
    """One release of a policy of a site, as registry and vault have it."""

    def block(self, reason: str) -> NoReturn:
        """Note the release as blocked, with the reason, and raise."""
        self.note_blocked(reason)
        raise Blocked(reason, where=str(self.id))

    @contextmanager
    def noting_refusals(self) -> Iterator[None]:
        """Note the reason of what is refused in the registry; not of a stage that was started out of turn, or had to wait."""
        try:
            yield
        except (NotPassed, StoreError):
            raise
        except ReleasePipelineError as refused:
            findings = refused.findings if isinstance(refused, DataRefused) else ()
            place = [f"{refused.where}:"] if refused.where not in ("", str(self.id)) else []
            remedy = [refused.remedy] if isinstance(refused, Blocked) and refused.remedy else []
            self.note_blocked(" ".join((*place, refused.what, *findings, *remedy)))
            raise

    def _read_masked(self, room: ReleaseRoom, note: Mapping[str, Any]) -> pa.Table:
        """The masked table, if it is the one that was committed."""
        table = room.read("masked")
        if self._version(fingerprints_of(table)) != note["version"]:
            raise Blocked(
                "the masked table in the vault was changed after it was committed.",
                where=str(self.id),
                remedy=f"Restore the vault. {next_revision(self.id)}",
            )
        return table

    def _previous(self, room: ReleaseRoom, stage: str) -> dict[str, Any]:
        """The note of a stage that must have run under this very policy."""
        note = room.note(stage)
        if note is None:
            raise NotPassed(
                f"the stage '{stage}' has not been passed.", where=str(self.id), remedy="Run the release from its start."
            )
        if note["policy_hash"] != self._hash:
            raise NotPassed(
                f"the stage '{stage}' was passed under another policy.",
                where=str(self.id),
                remedy="Run the release from its start.",
            )
        return note

    def _check_records(self, room: ReleaseRoom, clusters: Mapping[str, Any]) -> None:
        """Refuse when the records in the vault are no longer those that the clusters were made of."""
        if self._previous(room, "validated")["version"] != clusters["input"]:
            raise Blocked(
                "the records were validated anew since, and they are others.",
                where=str(self.id),
                remedy="Restore the source and run the release from its start.",
            )

    def _note(self, version: str, **content: Any) -> dict[str, Any]:
        return {"policy_hash": self._hash, "version": version, **content}

    def _version(self, parts: Sequence[object]) -> str:
        return self.site.keyed_hash(json.dumps([self._hash, str(self.id), *parts]).encode())

    def _source(self) -> SourceDoor:
        return find_source(self.policy.source, folder=self.site.home, values=self.site.environment, expected=self.policy.declared)

    @contextmanager
    def _room(self) -> Iterator[ReleaseRoom]:
        with open_room(self.site.vault, self.policy.population, self.id.room) as room:
            yield room

    @property
    def _partition(self) -> str | None:
        return None if self.policy.releases == "once" else self.id.release

    @property
    def _context(self) -> tuple[Context, ...]:
        return (self._hash, str(self.id), 0)


def content_of(room: ReleaseRoom, table: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    """Each column's name with the hash of its content."""
    return [(name, fingerprint(room.read(table, [name]))) for name in columns]


def fingerprints_of(table: pa.Table) -> list[str]:
    """The hash of each column's content."""
    return [fingerprint(table.select([name])) for name in table.column_names]
