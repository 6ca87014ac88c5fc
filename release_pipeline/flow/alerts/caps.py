"""How far the caps of a site are spent, by the registry alone, and which releases that are to come have no room any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from release_pipeline.flow.lineage import list_heirs, list_populations, open_population
from release_pipeline.flow.policies import Caps
from release_pipeline.flow.status.ledger import list_ahead
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Account, next_loss
from release_pipeline.store.ledger import Charge, charges_of
from release_pipeline.store.registry import Event, ReleaseId


@dataclass(frozen=True, slots=True)
class Spending:
    """What of a population's cap is spent. `refused`: of each policy about it the next release, where the cap has no room for it
    any more; one that no cap of this kind can ever admit is not among them."""

    account: Account
    refused: tuple[ReleaseId, ...]

    @property
    def share(self) -> Fraction | None:
        """What part of it is spent, more than 1 where it is overdrawn; None where no bound is known, or nothing may be spent."""
        total, most = self.account.total, self.account.most
        return None if total is None or most == 0 else Fraction(total, most)

    def describe(self, share: int | None) -> str:
        """That it is nearly spent, in words: `share` percent of it are, or, without, nothing is left for what comes next. Empty
        where that is not so."""
        account, names = self.account, ", ".join(map(str, self.refused))
        spent = f"{account.population} has spent {account.spent} of {account.limit} ({account.unit})"
        if share is not None:
            reached = self.share is None or self.share >= Fraction(share, 100)
            return f"{spent}, {share}% or more." if reached else ""
        return f"{spent}: {account.left} is left, and that is less than is needed for {names}." if names else ""


def list_spending(caps: Caps, policies: Iterable[Policy], events: tuple[Event, ...]) -> tuple[Spending, ...]:
    """That of every population that is charged still, or declared."""
    charges, known = charges_of(events), list(policies)
    open_ones = [name for name in list_populations(caps, charges) if not list_heirs(caps, name, charges)]
    return tuple(_find_spending(caps, name, known, charges, events) for name in open_ones)


def _find_spending(caps: Caps, name: str, policies: list[Policy], charges: list[Charge], events: tuple[Event, ...]) -> Spending:
    account, refused = open_population(caps, name, charges), list[ReleaseId]()
    for policy in policies:
        loss = next_loss(policy, None)
        for release in list_ahead(policy, charges, events)[:1] if policy.population == name else ():
            can_ever = account.of(loss) is not None
            if can_ever and not account.admits(loss):
                refused.append(release)
    return Spending(account, tuple(refused))
