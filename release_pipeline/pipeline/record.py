"""What the registry knows of one release, and what is told of it to everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from release_pipeline.errors import Blocked
from release_pipeline.formats.passed_stages import Suppressed
from release_pipeline.ledger.facts import PublicFacts, claimed_nano, describe_bound, note_facts
from release_pipeline.ledger.looks import Look, find_looks_before
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
from release_pipeline.pipeline.cap import check_cap, open_account
from release_pipeline.pipeline.reservation import forget_secret, next_revision
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.loss import sum_series
from release_pipeline.policy.plans.plan import describe_claim
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.store.files import PLAIN, Probe, is_whole
from release_pipeline.store.ledger import list_charges
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.store.source import SourceDoor
from release_pipeline.trust.approvals import check_may_run

Progress: TypeAlias = Callable[[str], None]
Admit: TypeAlias = Callable[[SourceDoor], str]  # the version of a source; raises where it may not be released


def record_failed_run(site: Site, release: ReleaseId, reason: str, *, run: str, told_elsewhere: bool = False) -> None:
    """A run of a release failed, noted once for each; the release's state stays what it was. Its policy is not read: that may be
    what broke. `told_elsewhere`: status need not tell it, for a block says it better, or a later run ended well."""
    with site.open_registry() as registry:
        if all(event.content.get("run") != run for event in registry.events if event.kind == FAILED):
            registry.add(FAILED, release, reason=reason, run=run, told_elsewhere=told_elsewhere)


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One release of a policy of a site, as the registry has it."""

    site: Site
    policy: Policy
    id: ReleaseId
    progress: Progress = lambda _: None
    probe: Probe = PLAIN
    admit: Admit | None = None

    def check_may_begin(self) -> None:
        """Refuse early what would be refused later, and note that the release is opened if nobody did."""
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

    def record_blocked(self, reason: str, *, code: str = Blocked.code) -> None:
        """Only a release that has no candidate becomes blocked: a refused attempt to make it again changes nothing. `code` is the
        kind of error, for scripts."""
        with self.site.open_registry() as registry:
            status = status_of(registry, self.id)
            if status.candidate_hash is None and (status.state, status.reason) != ("blocked", reason):
                move(registry, self.id, BLOCKED, reason=reason, code=code, policy_hash=self._hash)

    def record_failed(self, reason: str, *, run: str, told_elsewhere: bool = False) -> None:
        """See `record_failed_run`."""
        record_failed_run(self.site, self.id, reason, run=run, told_elsewhere=told_elsewhere)

    def record_drawn(self, masked: str) -> None:
        """Note the release as drawn, with the keyed hash of its masked table, once; and then forget its secret."""
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
        """Note the candidate with its hash and its public facts, unless that is known; then, that a run which broke off after it
        was made is not the last any more."""
        with self.site.open_registry() as registry:
            status = status_of(registry, self.id)
            if status.candidate_hash == digest:
                if status.failed:
                    registry.add(SERVED, self.id)
            else:
                payload = {"candidate_hash": digest, "policy_hash": self._hash, "facts": note_facts(facts, digest)}
                move(registry, self.id, CANDIDATE, **payload)

    def public_facts(self, *, records: int, rows_out: int, suppressed: Suppressed) -> dict[str, Any]:
        """What is recorded of the candidate for everybody: from declared facts, counts of rows and the ledger."""
        policy = self.policy
        with self.site.open_registry(read_only=True) as registry:
            charges = list_charges(registry)
        charges = charges[: 1 + next(place for place, charge in enumerate(charges) if charge.id == self.id)]
        account = open_account(
            read_caps(self.site), policy, charges
        )  # as it stood when this release was charged: a retry says the same
        claimed = claimed_nano(policy, charges[-1])
        series = sum_series(policy, [charge.loss for charge in charges if charge.id.policy == policy.policy])
        facts = PublicFacts(
            release=str(self.id),
            claim=describe_claim(policy),
            definition=policy.definition,
            scope=policy.protect.scope,
            method=policy.protect.method,
            epsilon=None if claimed is None else policy.in_epsilon(claimed),
            k=policy.protect.k,
            anonymity_k=suppressed.anonymity_k,
            column_bound=describe_bound(policy, charges[-1], "column"),
            table_bound=describe_bound(policy, charges[-1], "table"),
            series_epsilon=None if series is None else policy.in_epsilon(series),
            population_spent=f"{account.spent} of {account.limit} ({account.unit})",
            policy_hash=self._hash,
            rows_in=records,
            rows_out=rows_out,
            cells_blanked=suppressed.cells_blanked,
            delta=None if policy.delta is None else decimal_text(policy.delta),
            rho=None if policy.delta is None else claimed,
            series_rho=None if policy.delta is None else series,
            looks=len(self.list_looks()),
        )
        return facts.to_json()

    def claim_figures(self) -> dict[str, Any]:
        """Epsilon and k of the charged release as numbers; None where its claim has no such number."""
        with self.site.open_registry(read_only=True) as registry:
            charge = next((charge for charge in list_charges(registry) if charge.id == self.id), None)
        claimed = claimed_nano(self.policy, charge)
        return {"epsilon": None if claimed is None else self.policy.in_epsilon(claimed) / NANO, "k": self.policy.protect.k}

    def list_looks(self) -> tuple[Look, ...]:
        """The looks at the data that parameters of this release can have been chosen by; once it is charged, always the same."""
        with self.site.open_registry(read_only=True) as registry:
            return find_looks_before(registry.events, self.id)

    def check_frozen(self) -> None:
        """Refuse to replace a candidate that was changed after it was frozen: that is to be looked at, not repaired."""
        folder = self.site.candidate(str(self.id))
        if folder.exists() and self._status().candidate_hash is not None and not self.candidate_is_whole():
            raise Blocked(
                "the frozen candidate was changed after it was made.",
                where=str(self.id),
                remedy=f"Find out who changed {folder}; remove the folder to have it made again.",
            )

    def candidate_is_whole(self) -> bool:
        """Whether every file of the candidate has the hash that its list of sums says, and the list the recorded one."""
        return is_whole(self.site.candidate(str(self.id)), self._status().candidate_hash)

    def _status(self) -> ReleaseStatus:
        return list_statuses(self.site).get(self.id, ReleaseStatus(self.id))

    @property
    def _hash(self) -> str:
        return self.policy.canonical_hash()
