"""The check whether a release may begin: not held, approved where the site asks for that, and with room in its population's
ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from release_pipeline.errors import Blocked, OverCap
from release_pipeline.ledger.account import CapView, Ledger, list_ahead, read_ledgers, view_cap
from release_pipeline.ledger.office import check_accepted
from release_pipeline.ledger.policies import (
    Caps,
    check_lineage,
    check_population,
    open_population,
    read_caps,
)
from release_pipeline.ledger.states import check_not_held
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Amount
from release_pipeline.policy.loading.populations import find_population
from release_pipeline.policy.plans.loss import Account, Loss, depends_on_records, next_loss
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import Event, Registry, ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.approvals import check_may_run

NEEDS_RELEASES = "Nothing bounds this definition over releases: its population needs a cap like {releases: 1}."


def check_cap(
    site: Site, registry: Registry, policy: Policy, release: ReleaseId, *, records: int | None = None
) -> tuple[Account, Loss]:
    """Return the account of the policy's population, and the loss of a release that it has room for; raises with the reason
    otherwise.

    Without `records`, with the fewest that the policy admits: to refuse early what the charge would refuse.
    """
    check_accepted(registry.events)
    check_not_held(registry, release)
    caps = read_caps(site)
    check_may_run(site, registry, policy, caps)
    charges = list_charges(registry)
    check_lineage(caps, charges)
    account = open_population(caps, policy.population, charges)
    check_population(caps, policy.population, release, charges)
    loss = next_loss(policy, records)
    if not account.admits(loss):
        raise refuse_loss(account, loss, policy, release, at_least=records is None and depends_on_records(policy))
    return account, loss


def refuse_loss(account: Account, loss: Loss, policy: Policy, release: ReleaseId, *, at_least: bool = False) -> OverCap:
    """Return the refusal of a release that its population has no room for."""
    reason = f"{explain_infinity(policy, account)} " if account.of(loss) is None else ""
    return OverCap(
        f"the ledger refuses: {account.population} has {account.left} left of {account.limit} ({account.unit}; "
        f"{account.spent} is spent), and this release would take {'at least ' * at_least}{account.format(account.of(loss))}.",
        where=str(release),
        remedy=f"{reason}The cap is the privacy officer's: populations.yaml.",
    )


def explain_infinity(policy: Policy, account: Account) -> str:
    """Return why nothing fits under the cap of a population, and what would."""
    if not policy.adds_up:
        return NEEDS_RELEASES
    kept = " or fewer kept columns" if policy.kept_columns and account.cap.cap.scope == "table" else ""
    return f"Nothing bounds this policy in {account.unit}: it needs a cap in its own definition and scope, another method{kept}."


# The room that the ledger of a population has for a policy.


@dataclass(frozen=True, slots=True)
class Headroom:
    """The spent budget of the policy's population, and what the policy's next releases (`ahead`) would add: their `losses`, or
    None where those depend on an unknown number of rows. `refusal`: why the ledger would refuse the next one, empty where it has
    room. `others`: whether other policies charge the population, too."""

    policy: Policy
    account: Account
    ahead: tuple[ReleaseId, ...]
    losses: tuple[Loss, ...] | None
    refusal: str = ""
    others: bool = False

    @property
    def fitting(self) -> int:
        """Return how many of the releases ahead fit, one after the other, if no other policy charges before them."""
        account = self.account
        for fitting, loss in enumerate(self.losses or ()):
            account = account.plus(loss)
            if not account.admits():
                return fitting
        return len(self.losses or ())

    @property
    def needs(self) -> str:
        """Return what must change before anything fits; empty where something could."""
        if not self.losses or self.account.of(self.losses[0]) is not None:
            return ""
        return explain_infinity(self.policy, self.account)


def read_headroom(site: Site, policy: Policy, *, rows: int | None) -> Headroom:
    """Return the room that the ledger of its population has for a policy."""
    [found] = read_headrooms(site, [policy], rows=rows)
    return found


def read_headrooms(site: Site, policies: Sequence[Policy], *, rows: int | None) -> list[Headroom]:
    """Return the room for several policies of one population, each as if it were the only one: the registry is read once."""
    caps, population = read_caps(site), policies[0].population
    find_population(caps.declared, population, file=caps.file)
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
        events = registry.events
    check_lineage(caps, charges)
    [ledger] = read_ledgers(site, population, rows=rows)
    return [_find_headroom(policy, caps, ledger, charges, events, rows) for policy in policies]


def _find_headroom(
    policy: Policy, caps: Caps, ledger: Ledger, charges: list[Charge], events: tuple[Event, ...], rows: int | None
) -> Headroom:
    account = ledger.account
    ahead = list_ahead(policy, charges, events)
    unknown = rows is None and depends_on_records(policy)
    losses = None if unknown else (next_loss(policy, rows),) * len(ahead)
    refusal = _find_refusal(policy, caps, account, charges, ahead[0], losses[0]) if ahead and losses else ""
    others = any(plan.release.policy != policy.policy for plan in ledger.planned)
    return Headroom(policy, account, tuple(ahead), losses, refusal, others)


def _find_refusal(policy: Policy, caps: Caps, account: Account, charges: list[Charge], release: ReleaseId, loss: Loss) -> str:
    """Return why the ledger would refuse a release; empty where it would not."""
    try:
        check_population(caps, policy.population, release, charges)
    except Blocked as error:
        return str(error)
    is_admitted = account.admits(loss)
    return "" if is_admitted else str(refuse_loss(account, loss, policy, release))


def describe_headroom(headroom: Headroom) -> Iterator[str]:
    """Yield the lines that people read."""
    policy, account, ahead, losses = headroom.policy, headroom.account, headroom.ahead, headroom.losses
    if losses is None:
        yield "depends on the number of rows: name it with --rows"
        return
    at_delta = f"; {account.at_delta}" if account.at_delta else ""
    spent = f"population {account.population} has spent {account.spent} of {account.limit} ({account.unit}{at_delta})"
    if not losses:
        yield f"{spent}; every release of this policy is charged already, and a rerun costs nothing"
        return
    loss = losses[0]
    verdict = "fits" if account.admits(loss) else "is refused"
    yield f"{spent}; the next release {verdict}: {account.after(loss)} after it"
    if headroom.needs:
        yield headroom.needs
    if policy.every or len(ahead) > 1:
        which = f"of the next {len(ahead)} releases" if policy.every else f"of its {len(ahead)} releases not charged yet"
        take = account.format(account.of(loss))
        alone = f", if no other policy of {account.population} is charged before" if headroom.others else ""
        yield f"{which}, which take {take} each, {headroom.fitting if headroom.fitting < len(ahead) else 'all'} fit{alone}"


@dataclass(frozen=True, slots=True)
class NextView:
    """The next release of a policy in the ledger."""

    release: Annotated[str, "POLICY/PARTITION/rN"]
    amount: Annotated[Amount, "what it takes"]
    fits: Annotated[bool, "whether the ledger has room for it"]
    after: Annotated[Amount, "what is charged to the population with it"]


@dataclass(frozen=True, slots=True)
class HeadroomView:
    """The ledger before and after the next release of a policy."""

    population: Annotated[str, "its name"]
    unit: Annotated[str, "what is counted, in words"]
    cap: Annotated[Amount, "the most that may be spent"]
    declared: Annotated[CapView, "the cap in parts"]
    spent: Annotated[Amount, "what is charged already"]
    remaining: Annotated[Amount, "what may still be charged"]
    rows_needed: Annotated[bool, "whether what a release takes depends on its rows, and none are named: see --rows"]
    next: Annotated[NextView | None, "null where every release is charged already, or rows are needed"]
    ahead: Annotated[tuple[str, ...], "the releases that are not charged yet; of a series without end the next few"]
    fitting: Annotated[int | None, "how many of them fit, if no other policy charges before; null where rows are needed"]
    needs: Annotated[str | None, "why nothing can ever fit under this cap, and what would; null where something can"]


def view_headroom(headroom: Headroom) -> HeadroomView:
    """Return the room for a script."""
    account, first = headroom.account, None
    if headroom.losses:
        loss = headroom.losses[0]
        fits, after = account.admits(loss), account.after(loss)
        first = NextView(str(headroom.ahead[0]), account.format(account.of(loss)), fits=fits, after=after)
    return HeadroomView(
        population=account.population,
        unit=account.unit,
        cap=account.limit,
        declared=view_cap(account),
        spent=account.spent,
        remaining=account.left,
        rows_needed=headroom.losses is None,
        next=first,
        ahead=tuple(str(release) for release in headroom.ahead),
        fitting=None if headroom.losses is None else headroom.fitting,
        needs=headroom.needs or None,
    )
