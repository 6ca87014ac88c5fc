"""The room that the ledger of a population has for a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from release_pipeline.errors import Blocked
from release_pipeline.flow.cap import explain_infinity, refuse_loss
from release_pipeline.flow.lineage import check_lineage, check_population
from release_pipeline.flow.policies import Caps, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.status.ledger import list_ahead, read_ledgers
from release_pipeline.flow.status.ledger_document import CapView, view_cap
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Amount
from release_pipeline.policy.loss import Account, Loss, depends_on_records, next_loss
from release_pipeline.policy.populations import find_population
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import Event, ReleaseId


@dataclass(frozen=True, slots=True)
class Headroom:
    """What the population of a policy has spent, and what the policy's next releases (`ahead`) would make of it: their `losses`,
    or None where those depend on a number of rows that nobody named. `refusal`: why the ledger would refuse the next one, empty
    where it has room."""

    policy: Policy
    account: Account
    ahead: tuple[ReleaseId, ...]
    losses: tuple[Loss, ...] | None
    refusal: str = ""

    @property
    def fitting(self) -> int:
        """How many of those that are ahead fit, one after the other."""
        account = self.account
        for fitting, loss in enumerate(self.losses or ()):
            account = account.plus(loss)
            if not account.admits():
                return fitting
        return len(self.losses or ())

    @property
    def needs(self) -> str:
        """What has to be otherwise before anything fits; empty where something could."""
        if not self.losses or self.account.of(self.losses[0]) is not None:
            return ""
        return explain_infinity(self.policy, self.account)


def read_headroom(site: Site, policy: Policy, *, rows: int | None) -> Headroom:
    """The room that the ledger of its population has for a policy."""
    [found] = read_headrooms(site, [policy], rows=rows)
    return found


def read_headrooms(site: Site, policies: Sequence[Policy], *, rows: int | None) -> list[Headroom]:
    """The same of several policies of one population, each as if it were the only one: the registry is read once."""
    caps, population = read_caps(site), policies[0].population
    find_population(caps.declared, population, file=caps.file)
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
        events = registry.events
    check_lineage(caps, charges)
    [ledger] = read_ledgers(site, population, rows=rows)
    return [_find_headroom(policy, caps, ledger.account, charges, events, rows) for policy in policies]


def _find_headroom(
    policy: Policy, caps: Caps, account: Account, charges: list[Charge], events: tuple[Event, ...], rows: int | None
) -> Headroom:
    ahead = list_ahead(policy, charges, events)
    unknown = rows is None and depends_on_records(policy)
    losses = None if unknown else (next_loss(policy, rows),) * len(ahead)
    refusal = _find_refusal(policy, caps, account, charges, ahead[0], losses[0]) if ahead and losses else ""
    return Headroom(policy, account, tuple(ahead), losses, refusal)


def _find_refusal(policy: Policy, caps: Caps, account: Account, charges: list[Charge], release: ReleaseId, loss: Loss) -> str:
    """Why the ledger would refuse a release; empty where it would not."""
    try:
        check_population(caps, policy.population, release, charges)
    except Blocked as error:
        return str(error)
    is_admitted = account.admits(loss)
    return "" if is_admitted else str(refuse_loss(account, loss, policy, release))


def describe_headroom(headroom: Headroom) -> Iterator[str]:
    """It in lines for a person."""
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
        take = account.words(account.of(loss))
        yield f"{which}, which take {take} each, {headroom.fitting if headroom.fitting < len(ahead) else 'all'} fit"


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
    fitting: Annotated[int | None, "how many of them fit, one after the other; null where rows are needed"]
    needs: Annotated[str | None, "why nothing can ever fit under this cap, and what would; null where something can"]


def view_headroom(headroom: Headroom) -> HeadroomView:
    """The room for a script."""
    account, first = headroom.account, None
    if headroom.losses:
        loss = headroom.losses[0]
        fits, after = account.admits(loss), account.after(loss)
        first = NextView(str(headroom.ahead[0]), account.words(account.of(loss)), fits=fits, after=after)
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
