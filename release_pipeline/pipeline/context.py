"""The context of every stage of a release: its site, policy and name, and what is recorded of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from release_pipeline.audit.gates import Gate
from release_pipeline.errors import Blocked, DataRefused, Held, NotPassed, ReleasePipelineError, StoreError
from release_pipeline.ledger.facts import claimed_nano, note_facts
from release_pipeline.ledger.looks import WITHHELD, Look, find_looks_before, refuse_run
from release_pipeline.ledger.office import check_accepted
from release_pipeline.ledger.policies import read_caps, record_policy
from release_pipeline.ledger.states import (
    BLOCKED,
    CANDIDATE,
    DRAWN,
    FAILED,
    LOST_WORDS,
    OPENED,
    OUT,
    SERVED,
    ReleaseStatus,
    list_statuses,
    move,
    status_of,
)
from release_pipeline.mechanisms.accounting.budget import NANO
from release_pipeline.mechanisms.catalogue import MECHANISM_VERSION
from release_pipeline.mechanisms.noise import Context
from release_pipeline.pipeline.cap import check_cap
from release_pipeline.pipeline.reservation import forget_secret, next_revision
from release_pipeline.pipeline.sources import open_source
from release_pipeline.policy import Policy
from release_pipeline.rows.checks import round_up
from release_pipeline.rows.validate import Verdict, describe_failed
from release_pipeline.store.files import PLAIN, Probe, is_whole
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.source import SourceReader
from release_pipeline.store.vault import ReleaseWorkspace, open_workspace
from release_pipeline.trust.approvals import check_may_run

Progress: TypeAlias = Callable[[str], None]
NOT_MET = "the data do not meet the policy."


@dataclass(frozen=True, slots=True)
class StageResult:
    """The result of a stage. `facts` may be shown to anyone who sees Dagster's UI; `internal` only where the site allows it."""

    stage: str
    version: str
    facts: dict[str, Any]
    internal: dict[str, Any] = field(default_factory=dict[str, Any])
    verdicts: tuple[Verdict, ...] = ()
    gates: tuple[Gate, ...] = ()
    warnings: tuple[str, ...] = ()
    source: str = ""  # the version of the source that was read

    @property
    def refusal(self) -> tuple[str, ...]:
        """Return why the release must not go on, if it must not."""
        return tuple(message for verdict in self.verdicts if not verdict.passed for message in verdict.messages)


def record_failed_run(site: Site, release: ReleaseId, reason: str, *, run: str, told_elsewhere: bool = False) -> None:
    """Record that a run of a release failed, once for each; the release's state stays. Its policy is not read, since that may be
    what broke. `told_elsewhere`: status need not report it, since a block says it better, or a later run ended well."""
    with site.open_registry() as registry:
        if all(event.content.get("run") != run for event in registry.events if event.kind == FAILED):
            registry.add(FAILED, release, reason=reason, run=run, told_elsewhere=told_elsewhere)


@dataclass(frozen=True, slots=True)
class StageContext:
    """One release of one policy of a site, with its registry and vault."""

    site: Site
    policy: Policy
    id: ReleaseId
    progress: Progress = lambda _: None
    probe: Probe = PLAIN

    def check_may_begin(self) -> None:
        """Refuse early what would be refused later, and record that the release is opened if that was not done."""
        with self.site.open_registry() as registry:
            status = status_of(registry, self.id)
            if status.pruned and status.drawn is not None:
                raise Blocked(
                    f"its tables were pruned on {status.pruned[:10]}, as its policy says; what was made of them stands.",
                    where=str(self.id),
                    remedy=f"A correction is {self.id.next}.",
                )
            if status.state in (*OUT, "rejected"):
                raise Blocked(f"it is {status.state}.", where=str(self.id), remedy=next_revision(self.id))
            if self.policy.audience is None and status.charge is None:
                what = "its policy does not say who may read the release. Nothing was charged."
                remedy = "Add audience: public, {licensed: TERMS} or internal; adding it after a charge would cost another."
                raise Blocked(what, where=str(self.id), remedy=remedy)
            check_accepted(registry.events)
            if status.lost:
                raise Blocked(LOST_WORDS, where=str(self.id), remedy=next_revision(self.id))
            if status.replaced is not None and status.drawn is None:
                raise Blocked(f"it was given up for {status.replaced}.", where=str(self.id), remedy="Run that one.")
            if status.charge is None:
                check_cap(self.site, registry, self.policy, self.id)
            else:
                check_may_run(self.site, registry, self.policy, read_caps(self.site))
            record_policy(self.site, registry, self.policy)
            if not status.since:
                move(registry, self.id, OPENED, why="by hand")

    def block(self, reason: str, *, code: str = Blocked.code) -> NoReturn:
        """Record the release as blocked, with the reason, and raise."""
        self.record_blocked(reason, code=code)
        blocked = Blocked(reason, where=str(self.id))
        blocked.code = code
        raise blocked

    @contextmanager
    def recording_refusals(self) -> Generator[None]:
        """Record the reason of a refusal in the registry; not of a stage that was started out of turn, or has to wait."""
        try:
            yield
        except (NotPassed, Held, StoreError):
            raise
        except ReleasePipelineError as refused:
            where = [f"{refused.where}:"] if refused.where not in ("", str(self.id)) else []
            remedy = [refused.remedy] if isinstance(refused, Blocked) and refused.remedy else []
            self.record_blocked(" ".join((*where, refused.what, *refused.details, *remedy)), code=refused.code)
            raise

    @contextmanager
    def counting_refusals(self) -> Generator[None]:
        """Count a refusal in the block as a trial on the records of this run, before anyone reads why."""
        try:
            yield
        except (NotPassed, Held, StoreError):
            raise
        except ReleasePipelineError as refused:
            self.count_refusal()
            if not isinstance(refused, DataRefused) or not self.site.forbids_looks:
                raise
            findings = (*(describe_failed(family, self.policy) for family in refused.families), WITHHELD)
            raise DataRefused(NOT_MET, findings=findings, where=refused.where) from None

    def count_refusal(self) -> None:
        """Record this run, which read records and releases nothing, as a trial."""
        refuse_run(self.site, self.id)

    def show_rows(self, records: int) -> dict[str, int]:
        """Return the number of records as a public fact: to the next ten before the charge, and none where trials are forbidden,
        since a release's filter may be chosen to count records."""
        if self.read_status().charge is not None:
            return {"rows": records}
        return {} if self.site.forbids_looks else {"rows": round_up(records)}

    def record_blocked(self, reason: str, *, code: str = Blocked.code) -> None:
        """Record the release as blocked, unless it has a candidate: a refused attempt to make it again changes nothing. `code` is
        the kind of error, for scripts."""
        with self.site.open_registry() as registry:
            status = status_of(registry, self.id)
            if status.candidate_hash is None and (status.state, status.reason) != ("blocked", reason):
                move(registry, self.id, BLOCKED, reason=reason, code=code, policy_hash=self.policy_hash)

    def record_drawn(self, masked: str) -> None:
        """Record the release as drawn, with the keyed hash of its masked table, once; and then forget its secret."""
        with self.site.open_registry() as registry:
            status = status_of(registry, self.id)
            if status.drawn is None:
                move(registry, self.id, DRAWN, masked=masked)
        self.probe.reached("drawn is noted")
        if status.drawn not in (None, masked):
            raise Blocked(
                "the vault holds another masked table than the one that the registry noted as drawn.",
                where=str(self.id),
                remedy="Restore the vault as it was.",
            )
        forget_secret(self.site, self.id)
        self.probe.reached("the secret is forgotten")

    def record_candidate(self, digest: str, facts: Mapping[str, Any]) -> None:
        """Record the candidate with its hash and its public facts, unless that is known; then, that a run which broke off after
        it was made is no longer the last."""
        with self.site.open_registry() as registry:
            status = status_of(registry, self.id)
            if status.candidate_hash == digest:
                if status.failed:
                    registry.add(SERVED, self.id)
            else:
                payload = {"candidate_hash": digest, "policy_hash": self.policy_hash, "facts": note_facts(facts, digest)}
                move(registry, self.id, CANDIDATE, **payload)

    def claim_figures(self) -> dict[str, Any]:
        """Return epsilon and k of the charged release as numbers; None where its claim has no such number."""
        with self.site.open_registry(read_only=True) as registry:
            charge = next((charge for charge in list_charges(registry) if charge.id == self.id), None)
        claimed = claimed_nano(self.policy, charge)
        return {"epsilon": None if claimed is None else self.policy.in_epsilon(claimed) / NANO, "k": self.policy.protect.k}

    def list_looks(self) -> tuple[Look, ...]:
        """Return the trials on the data by which parameters of this release can have been chosen; once it is charged, always the
        same."""
        with self.site.open_registry(read_only=True) as registry:
            return find_looks_before(registry.events, self.id)

    def check_frozen(self) -> None:
        """Refuse to replace a candidate that was changed after it was frozen: that is to be investigated, not repaired."""
        folder = self.site.candidate(str(self.id))
        if folder.exists() and self.read_status().candidate_hash is not None and not self.candidate_is_whole():
            raise Blocked(
                "the frozen candidate was changed after it was made.",
                where=str(self.id),
                remedy=f"Find out who changed {folder}; remove the folder to have it made again.",
            )

    def candidate_is_whole(self) -> bool:
        """Return whether every file of the candidate has the hash in its list of sums, and the list the recorded one."""
        return is_whole(self.site.candidate(str(self.id)), self.read_status().candidate_hash)

    def read_status(self) -> ReleaseStatus:
        """Return the release's state in the registry."""
        return list_statuses(self.site).get(self.id, ReleaseStatus(self.id))

    @property
    def policy_hash(self) -> str:
        """Return the canonical hash of the policy."""
        return self.policy.canonical_hash()

    def hash_version(self, parts: Sequence[object]) -> str:
        """Return a keyed hash of these parts under this release and policy: the version of a stage's result."""
        return self.site.keyed_hash(json.dumps([self.policy_hash, str(self.id), *parts]).encode())

    def open_source(self, version: int | None = None) -> SourceReader:
        """Return the source of the policy, opened; of a Delta table the current version, or this one."""
        return open_source(self.site, self.policy, version)

    def open_workspace(self) -> AbstractContextManager[ReleaseWorkspace]:
        """Return the tables of this release in the vault, for as long as the block lasts; one process at a time."""
        return open_workspace(self.site.vault, self.policy.population, self.id.workspace, memory=self.site.memory)

    def noise_context(self, source: str) -> tuple[Context, ...]:
        """Return what the release's noise is derived from besides its secret. `source`: the keyed hash of the records, as
        charged, so that other records get other noise even where a secret is used twice."""
        return (self.policy_hash, str(self.id), source, MECHANISM_VERSION)
