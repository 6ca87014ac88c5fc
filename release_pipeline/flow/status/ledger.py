"""The ledger of a population: what was charged for which release, what is planned, and what is left. And person by person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import TypeAlias

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.exposure import read_exposure
from release_pipeline.flow.lineage import list_heirs, list_populations, open_population
from release_pipeline.flow.policies import read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import read_statuses
from release_pipeline.flow.upcoming import next_releases
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Account, depends_on_records, next_loss
from release_pipeline.privacy.figures import count_of
from release_pipeline.store.ledger import Charge, find_entered, list_charges
from release_pipeline.store.registry import Event, ReleaseId

Draw: TypeAlias = Callable[[Sequence[Sequence[str]]], Iterable[str]]  # a table of rows, the head first, as lines
MOST_AHEAD = 5  # releases of an endless series that are shown


@dataclass(frozen=True, slots=True)
class Planned:
    """A release that is declared and not charged: what it may spend (with the fewest records that its policy lets through, where
    that matters), and whether there is room for it after the ones before it."""

    release: ReleaseId
    cost: int | None
    fits: bool
    at_least: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of one population, its charges with those of the populations that it carries on, and what its policies plan.
    `endless`: the policies that never end; `declared`: whether populations.yaml has it now; `heirs`: the populations that carry
    it on, so that nothing is charged to it any more; `lost`: what was lost with the site, and when the officer entered its
    charge after the restore (empty where the backup had it). What was lost counts as drawn: nobody knows that it was not."""

    account: Account
    charges: tuple[Charge, ...]
    undrawn: frozenset[ReleaseId]
    planned: tuple[Planned, ...]
    endless: tuple[str, ...]
    declared: bool = True
    heirs: tuple[str, ...] = ()
    lost: Mapping[ReleaseId, str] = field(default_factory=dict[ReleaseId, str])

    @property
    def reserved(self) -> int | None:
        """The part of what is spent whose noise is not drawn yet; None is infinity."""
        mine = (charge for charge in self.charges if charge.population == self.account.population)
        return self.account.sum_of(charge.loss for charge in mine if charge.id in self.undrawn)


def read_ledgers(site: Site, population: str | None = None, *, rows: int | None = None) -> list[Ledger]:
    """The ledger of every population that is declared or was ever charged, or of one. `rows`: of a planned release (default: its
    min_rows)."""
    caps = read_caps(site)
    with site.open_registry(read_only=True) as registry:
        charges, events = list_charges(registry), registry.events
    populations = list_populations(caps, charges)
    if population is not None and population not in populations:
        known = ", ".join(populations) or "none"
        raise WrongUsage(f"this site has no population '{population}'.", where=str(caps.file), remedy=f"There are: {known}.")
    statuses, entered = read_statuses(events), find_entered(events)
    lost = {name: entered.get(name, "") for name, status in statuses.items() if status.lost}
    policies, _ = site.read_policies()  # `status` tells what is wrong with the others
    ledgers: list[Ledger] = []
    for name in populations if population is None else [population]:
        account, heirs = open_population(caps, name, charges), list_heirs(caps, name, charges)
        mine = tuple(charge for charge in charges if charge.population in (name, *account.carries))
        planned, ahead = list[Planned](), account
        for policy in policies:
            if policy.population == name:
                releases = list_ahead(policy, charges, events)
                loss = next_loss(policy, rows)
                for release in releases:
                    ahead = ahead.plus(loss)
                    by_rows, fits = depends_on_records(policy) and rows is None, ahead.admits() and not heirs
                    planned.append(Planned(release, account.of(loss), fits, by_rows))
        undrawn = frozenset(charge.id for charge in mine if statuses[charge.id].drawn is None and charge.id not in lost)
        endless = tuple(policy.policy for policy in policies if policy.population == name and policy.every)
        ledgers.append(Ledger(account, mine, undrawn, tuple(planned), endless, name in caps.declared, heirs, lost))
    return ledgers


def describe_ledger(ledger: Ledger, *, draw: Draw | None = None) -> Iterator[str]:
    """A ledger in lines for a person; `draw` draws the table in another way."""
    account = ledger.account
    yield f"population {account.population}: cap {account.limit} ({account.unit}), for each person in the worst case"
    reserved = f", of it {account.words(ledger.reserved)} reserved for noise not drawn yet" if ledger.undrawn else ""
    at_delta = f"; {account.at_delta}" if account.at_delta else ""
    yield f"  spent      {account.spent}{reserved}{at_delta}"
    yield f"  remaining  {account.left}"
    if not account.admits():
        yield "  overdrawn  more is spent than the cap allows: nothing is charged until the officer raises it"
    if account.carries:
        yield f"  carries    what its people were charged in {', '.join(account.carries)}"
    if ledger.heirs:
        yield f"  closed     carried on by {', '.join(ledger.heirs)}; nothing is charged to it any more"
    elif not ledger.declared:
        yield "  forgotten  not declared in populations.yaml any more, and carried on by none: every run is refused until it is"
    if draw is not None:
        yield from draw([("release", account.unit, "what"), *_tabulate(ledger)])
    else:
        width = max([7, *(len(release) for release, _, _ in _tabulate(ledger))])
        yield from (f"  {release:<{width}}  {amount:>10}  {what}" for release, amount, what in _tabulate(ledger))
    if ledger.endless:
        yield f"  without end: {', '.join(ledger.endless)} (the next {MOST_AHEAD} are shown)"


def _tabulate(ledger: Ledger) -> Iterator[tuple[str, str, str]]:
    """What each release spent or will spend: its name, the amount, and what became of it."""
    account = ledger.account
    for charge in ledger.charges:
        what = "reserved" if charge.id in ledger.undrawn else "spent"
        remark = f"; {words}" if (words := describe_lost(ledger, charge)) else ""
        where = f" in {charge.population}" * (charge.population != account.population)
        yield str(charge.id), account.words(account.of(charge.loss)), f"{what} {charge.noted[:10]}{where}{remark}"
    for plan in ledger.planned:
        what = "planned" if plan.fits else "planned: will be refused"
        least = " at least, more with more rows" if plan.at_least else ""
        yield str(plan.release), account.words(plan.cost), f"{what}{least}"


def describe_lost(ledger: Ledger, charge: Charge) -> str:
    """What became of a charge whose release was lost with the site; empty for any other."""
    if charge.id not in ledger.lost:
        return ""
    moment = ledger.lost[charge.id]
    if not moment:
        return "lost with the site, after it was charged"
    return f"lost with the site; charged as of {count_of(charge.records, 'record')} by the officer on {moment[:10]}"


def describe_exposure(site: Site, ledger: Ledger) -> Iterator[str]:
    """How many people were exposed to how much, exactly. Confidential: it says who took part how often."""
    exposure = read_exposure(site, ledger.account)
    if nobody := sorted(str(charge.id) for charge in ledger.charges if ledger.lost.get(charge.id)):
        yield f"  without {', '.join(nobody)}: lost with the site, and with it who was in it"
    if ledger.account.carries:
        yield f"  without what they were exposed to in {', '.join(ledger.account.carries)}: `ledger --overlap` adds that up"
    yield "  confidential: how many people were exposed to how much (policies with a person column)"
    for amount, people in exposure.in_order:
        yield f"  {ledger.account.words(amount):>10}  {count_of(people, 'person')}".replace("persons", "people")


def list_ahead(policy: Policy, charges: list[Charge], events: tuple[Event, ...]) -> list[ReleaseId]:
    """The releases of a policy that are still to be charged, opened revisions included; of an endless series the next ones."""
    statuses = read_statuses(events)
    charged = {charge.id for charge in charges}
    opened = [known for known, status in statuses.items() if known.policy == policy.policy and status.replaced is None]
    waiting = [known for known in opened if known not in charged]
    begun = {known.release for known in statuses if known.policy == policy.policy}
    names = [name for name in policy.release_names if name not in begun]
    if policy.every:
        coming = islice(next_releases(policy, events, datetime.now(UTC)), max(1, MOST_AHEAD - len(waiting)))
        names = [upcoming.release for upcoming in coming]
    return [*waiting, *(ReleaseId(policy.policy, name) for name in names)]
