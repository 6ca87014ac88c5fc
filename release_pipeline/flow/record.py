"""What the registry knows of one release, and what is told of it to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from release_pipeline.errors import Blocked
from release_pipeline.flow.candidate import candidate_hash, is_whole
from release_pipeline.flow.reservation import forget_secret, open_account, refuse_over_cap
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Loss, release_loss, table_is_covered
from release_pipeline.policy.plan import describe_claim
from release_pipeline.privacy.budget import NANO, format_nano
from release_pipeline.privacy.methods import DEFINITION
from release_pipeline.store.registry import ReleaseId, open_registry


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One release of a policy of a site, as the registry has it."""

    site: Site
    policy: Policy
    id: ReleaseId

    def check_cap(self) -> None:
        """Refuse early what the charge would refuse, with the fewest records that the policy lets through."""
        with open_registry(self.site.registry) as registry:
            charges = registry.charges()
        mine = [charge for charge in charges if charge.population == self.policy.population]
        account = open_account(self.site, self.policy, mine)
        loss = release_loss(self.policy, records=self.policy.gates.min_rows or 0)
        if all(charge.id != self.id for charge in charges) and not account.admits(loss):
            raise refuse_over_cap(account, loss, self.id)

    def note_blocked(self, reason: str) -> None:
        """Only a release that has no candidate becomes blocked: a refused attempt to make it again changes nothing."""
        with open_registry(self.site.registry) as registry:
            known = {state.id: state for state in registry.states()}.get(self.id)
            if known is None or (known.state != "candidate" and (known.state, known.reason) != ("blocked", reason)):
                registry.set_state(self.id, "blocked", policy_hash=self._hash, reason=reason)

    def note_drawn(self) -> None:
        """Note the release as drawn, once, and then forget its secret."""
        with open_registry(self.site.registry) as registry:
            known = [state.state for state in registry.states() if state.id == self.id]
            if known == ["reserved"]:
                registry.set_state(self.id, "drawn", policy_hash=self._hash)
        forget_secret(self.site, self.id)

    def public_facts(self, *, rows_in: int, rows_out: int, suppressed: Mapping[str, Any]) -> dict[str, Any]:
        """What is recorded of the candidate for everybody: from declared facts, counts of rows and the ledger."""
        policy = self.policy
        loss = release_loss(policy, records=rows_in)
        definition = DEFINITION[policy.protect.method]
        with open_registry(self.site.registry) as registry:
            charges = registry.charges()
        charges = charges[: 1 + next(place for place, charge in enumerate(charges) if charge.id == self.id)]
        mine = [charge for charge in charges if charge.population == policy.population]
        account = open_account(self.site, policy, mine)  # as it stood when this release was charged: a retry says the same
        series = [charge.loss.of(definition, policy.protect.scope) for charge in charges if charge.id.policy == policy.policy]
        return {
            "release": str(self.id),
            "claim": describe_claim(policy),
            "definition": definition,
            "scope": policy.protect.scope,
            "method": policy.protect.method,
            "epsilon": policy.protect.epsilon.nano * policy.records_per_person / NANO,
            "k": policy.protect.k,
            "anonymity_k": suppressed["anonymity_k"],
            "column_bound": _bound_words(loss, definition, "column"),
            "table_bound": "the same epsilon" if table_is_covered(policy) else "not bounded",
            "series_epsilon": None if None in series else sum(part or 0 for part in series) / NANO,
            "population_spent": f"{account.spent} of {account.limit} ({account.unit})",
            "policy_hash": self._hash,
            "rows_in": rows_in,
            "rows_out": rows_out,
            "cells_blanked": suppressed["cells_blanked"],
        }

    def check_frozen(self) -> None:
        """Refuse to replace a candidate that was changed after it was frozen: that is to be looked at, not repaired."""
        folder = self.site.candidate(str(self.id))
        with open_registry(self.site.registry) as registry:
            frozen = any(state.id == self.id and state.state == "candidate" for state in registry.states())
        if frozen and folder.exists() and not self.candidate_is_whole():
            raise Blocked(
                "the frozen candidate was changed after it was made.",
                where=str(self.id),
                remedy=f"Find out who changed {folder}; remove the folder to have it made again.",
            )

    def candidate_is_whole(self) -> bool:
        """Whether every file of the candidate has the hash that its list of sums says, and the list the recorded one."""
        folder = self.site.candidate(str(self.id))
        with open_registry(self.site.registry) as registry:
            recorded = [state.candidate_hash for state in registry.states() if state.id == self.id]
        return is_whole(folder) and recorded == [candidate_hash(folder)]

    @property
    def _hash(self) -> str:
        return self.policy.canonical_hash()


def _bound_words(loss: Loss, definition: str, scope: str) -> str:
    nano = loss.of(definition, scope)
    return "not bounded" if nano is None else f"at most epsilon {format_nano(nano)} in all"
