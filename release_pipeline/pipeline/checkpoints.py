"""What the vault has of one release: its workspace, the checkpoints of its stages, and whether they are still of the same
thing."""

from __future__ import annotations

import hmac
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias, TypeVar

from release_pipeline.errors import Blocked, DataRefused, Held, NotPassed, ReleasePipelineError, StoreError
from release_pipeline.formats import versions as formats
from release_pipeline.formats.passed_stages import PASSED, Checkpoint, Masked, Microaggregated, Validated
from release_pipeline.ledger.looks import WITHHELD, refuse_run
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.catalogue import MECHANISM_VERSION
from release_pipeline.mechanisms.noise import Context
from release_pipeline.pipeline.record import ReleaseRecord
from release_pipeline.pipeline.reservation import next_revision
from release_pipeline.pipeline.sources import open_source
from release_pipeline.pipeline.vaults import check_vaults, people_sums_key, read_people_sums, seal_people_sums
from release_pipeline.policy.documents import read_as
from release_pipeline.policy.file.sections import Person
from release_pipeline.rows.checks import round_up
from release_pipeline.rows.validate import describe_failed
from release_pipeline.store.source import SourceDoor
from release_pipeline.store.vault import ReleaseWorkspace, open_workspace

Kind = TypeVar("Kind", bound=Checkpoint)
OF_PEOPLE = ("people", "owners")  # the tables that say whose records they are
Read: TypeAlias = Mapping[str, Sequence[str] | None]  # by table: the columns that a stage reads, None of which are all


@dataclass(frozen=True, slots=True)
class ReleaseCheckpoints(ReleaseRecord):
    """One release of a policy of a site, as registry and vault have it."""

    def block(self, reason: str, *, code: str = Blocked.code) -> NoReturn:
        """Note the release as blocked, with the reason, and raise."""
        self.record_blocked(reason, code=code)
        blocked = Blocked(reason, where=str(self.id))
        blocked.code = code
        raise blocked

    @contextmanager
    def recording_refusals(self) -> Generator[None]:
        """Note the reason of what is refused in the registry; not of a stage that was started out of turn, or has to wait."""
        try:
            yield
        except (NotPassed, Held, StoreError):
            raise
        except ReleasePipelineError as refused:
            place = [f"{refused.where}:"] if refused.where not in ("", str(self.id)) else []
            remedy = [refused.remedy] if isinstance(refused, Blocked) and refused.remedy else []
            self.record_blocked(" ".join((*place, refused.what, *refused.details, *remedy)), code=refused.code)
            raise

    @contextmanager
    def counting_refusals(self) -> Generator[None]:
        """Count what is refused inside as a trial on the records of this run, before anybody reads why."""
        try:
            yield
        except (NotPassed, Held, StoreError):
            raise
        except ReleasePipelineError as refused:
            self.count_refusal()
            if not isinstance(refused, DataRefused) or not self.site.forbids_looks:
                raise
            findings = (*(describe_failed(family, self.policy) for family in refused.families), WITHHELD)
            raise DataRefused("the data do not meet the policy.", findings=findings, where=refused.where) from None

    def count_refusal(self) -> None:
        """The registry has this run, which read records and releases nothing, as a trial."""
        refuse_run(self.site, self.id)

    def show_rows(self, records: int) -> dict[str, int]:
        """How many records there are, as a fact for everybody: to the next ten before the charge, and none where trials are
        forbidden, for what a release is may be chosen to count records."""
        if self._status().charge is not None:
            return {"rows": records}
        return {} if self.site.forbids_looks else {"rows": round_up(records)}

    def _write_checkpoint(
        self, workspace: ReleaseWorkspace, kind: type[Kind], version: str, tables: Sequence[str], **content: Any
    ) -> Kind:
        """The checkpoint of a stage, with the hashes of the tables that it vouches for, sealed: nobody without the vault's key
        changes one or the other unseen."""
        stage = kind.stage
        header = {"policy_hash": self._hash, "version": version, "tables": {name: workspace.hash_table(name) for name in tables}}
        checkpoint = json.loads(json.dumps({**header, **content}))  # as it will be read
        workspace.write_checkpoint(stage, {**checkpoint, "seal": self._seal(stage, checkpoint)})
        return read_as(kind, checkpoint, where=self._place_of(stage))

    def _find_checkpoint(self, workspace: ReleaseWorkspace, kind: type[Kind]) -> Kind | None:
        """The checkpoint of a stage, if there is one; refused when it is not what was written."""
        stage = kind.stage
        checkpoint = workspace.checkpoint(stage)
        if checkpoint is None:
            return None
        seal = checkpoint.pop("seal", "")
        if not hmac.compare_digest(str(seal).encode(), self._seal(stage, checkpoint).encode()):
            raise self._changed(f"the note of the stage '{stage}'")
        where = self._place_of(stage)
        return read_as(kind, formats.NOTE.read(checkpoint, where=where), where=where)

    def check_vaults(self, workspace: ReleaseWorkspace) -> None:
        """Refuse to go on where vaults and registry do not know of the same releases: one of them is an older copy, or a new one
        in the place of one that was lost."""
        check_vaults(self.site, self.policy.population, workspace)

    def _expose(self, workspace: ReleaseWorkspace) -> None:
        """Keep who is in the release beside the rooms, under the seal of what was kept so before (`check_vaults` missed none)."""
        kept = read_people_sums(self.site, self.policy.population, workspace.people_note())
        people, key = isinstance(self.policy.person, Person), people_sums_key(self.site)
        sums = workspace.expose(str(self.id), people=people, key=key, kept=kept)
        workspace.write_people_note(seal_people_sums(self.site, self.policy.population, sums))

    def find_faults(self, workspace: ReleaseWorkspace, drawn: str, *, deep: bool) -> Iterator[str]:
        """What of a drawn release is not in the vault as its sealed checkpoints say; `deep`: every table is hashed again,
        too. Two checkpoints may vouch for one table: each fault is told once."""
        yield from dict.fromkeys(self._find_faults(workspace, drawn, deep=deep))

    def _find_faults(self, workspace: ReleaseWorkspace, drawn: str, *, deep: bool) -> Iterator[str]:
        there = workspace.tables()
        for kind in PASSED:
            try:
                checkpoint = self._find_checkpoint(workspace, kind)
                if checkpoint is None:
                    if kind is Masked:
                        yield "its masked table is missing"
                    continue
                if isinstance(checkpoint, Masked) and checkpoint.version != drawn:
                    yield "its masked table is another than the one that was noted as drawn"
                for name in sorted(set(checkpoint.tables) - there):
                    yield f"the table {name} is missing"
                if deep and set(checkpoint.tables) <= there:
                    self._check_tables(workspace, checkpoint)
            except ReleasePipelineError as error:
                yield error.what.rstrip(".")

    def _place_of(self, stage: str) -> str:
        return f"{self.id}, the note of the stage '{stage}'"

    def _check_tables(self, workspace: ReleaseWorkspace, checkpoint: Checkpoint, read: Read | None = None) -> None:
        """Refuse unless the tables that a checkpoint vouches for, or those of them that are read, are what they were when it was
        written."""
        there = workspace.tables()
        for name, prints in checkpoint.tables.items():
            if read is not None and name not in read:
                continue
            columns = None if read is None else read[name]
            known = set(prints) if columns is None else set(columns)
            is_whole = name in there and set(workspace.columns(name)) == set(prints) >= known  # none was added or taken away
            if not is_whole or workspace.hash_table(name, columns) != {column: prints[column] for column in known}:
                raise self._changed(f"the table {name}")

    def _changed(self, what: str) -> Blocked:
        return Blocked(
            f"{what} in the vault is not what was written.",
            where=str(self.id),
            remedy=f"Find out who wrote to the vault, and restore it. {next_revision(self.id)}",
        )

    def _seal(self, stage: str, checkpoint: Mapping[str, Any]) -> str:
        return self.site.keyed_hash(json.dumps(["note", str(self.id), stage, checkpoint], sort_keys=True).encode())

    def _previous(self, workspace: ReleaseWorkspace, kind: type[Kind], *, check: bool = False, read: Read | None = None) -> Kind:
        """The checkpoint of a stage that must have run under this very policy; with `check`, and its tables as they were: all, or
        those that are read."""
        checkpoint, stage = self._find_checkpoint(workspace, kind), kind.stage
        if checkpoint is None:
            raise NotPassed(
                f"the stage '{stage}' has not been passed.", where=str(self.id), remedy="Run the release from its start."
            )
        if checkpoint.policy_hash != self._hash:
            raise NotPassed(
                f"the stage '{stage}' was passed under another policy.",
                where=str(self.id),
                remedy="Run the release from its start.",
            )
        if check:
            self._check_tables(workspace, checkpoint, read)
        return checkpoint

    def _check_records(self, workspace: ReleaseWorkspace, clusters: Microaggregated, *, are_read: bool) -> None:
        """Refuse when the records were validated anew since the clusters were made of them; where they are read, also when those
        in the vault are others."""
        validated = self._previous(workspace, Validated)
        if are_read:
            self._check_tables(workspace, validated, {name: None for name in validated.tables if name not in OF_PEOPLE})
        if validated.version != clusters.input:
            raise Blocked(
                "the records were validated anew since, and they are others.",
                where=str(self.id),
                remedy="Restore the source and run the release from its start.",
            )

    def _version(self, parts: Sequence[object]) -> str:
        return self.site.keyed_hash(json.dumps([self._hash, str(self.id), *parts]).encode())

    def _source(self) -> SourceDoor:
        return open_source(self.site, self.policy)

    def _workspace(self) -> AbstractContextManager[ReleaseWorkspace]:
        return open_workspace(self.site.vault, self.policy.population, self.id.workspace, memory=self.site.memory)

    def find_earlier_blocks(self, workspace: ReleaseWorkspace) -> IntArray | None:
        """The block that each record's person was in, in earlier releases; None where nothing is swapped, or nobody knows who is
        in several of them."""
        if self.policy.swap is None or not isinstance(self.policy.person, Person):
            return None
        return workspace.read_earlier_blocks(self.policy.policy)

    def _context(self, source: str) -> tuple[Context, ...]:
        """What the release's noise is derived from besides its secret. `source`: the keyed hash of the records, as charged, so
        that other records get other noise even where a secret is used twice."""
        return (self._hash, str(self.id), source, MECHANISM_VERSION)
