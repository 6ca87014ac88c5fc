"""The ledger of a population: what was charged for which release, what is planned, and what is left. And person by person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from release_pipeline.flow.admission import NEEDS_RELEASES
from release_pipeline.flow.exposure import read_exposure
from release_pipeline.flow.series import find_series
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import read_standings
from release_pipeline.flow.timetable import describe_timetable, next_releases
from release_pipeline.policy import Policy
from release_pipeline.policy.loss import Account, Loss, depends_on_records
from release_pipeline.policy.plan import count_of
from release_pipeline.policy.populations import find_population, load_populations
from release_pipeline.store.ledger import Charge, list_charges, list_next_losses
from release_pipeline.store.registry import Event, ReleaseId

MOST_AHEAD = 5  # releases of an endless series that are shown


@dataclass(frozen=True, slots=True)
class Planned:
    """A release that is declared and not charged: what it may spend (with the fewest records that its policy lets through, where
    that matters), and whether there is room for it after the ones before it."""

    release: str
    cost: int | None
    fits: bool
    at_least: bool


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of one population, its charges, and what its policies plan. `endless`: the policies that never end."""

    account: Account
    charges: tuple[Charge, ...]
    undrawn: frozenset[ReleaseId]
    planned: tuple[Planned, ...]
    endless: tuple[str, ...]

    @property
    def reserved(self) -> int | None:
        """The part of what is spent whose noise is not drawn yet."""
        return self.account.sum_of(charge.loss for charge in self.charges if charge.id in self.undrawn)


def read_ledgers(site: Site, population: str | None = None, *, rows: int | None = None) -> list[Ledger]:
    """The ledger of every declared population, or of one. `rows`: of a planned release (default: its min_rows)."""
    populations = load_populations(site.populations_file)
    if population is not None:
        populations = {population: find_population(populations, population, file=site.populations_file)}
    with site.open_registry(read_only=True) as registry:
        charges, events = list_charges(registry), registry.events
    standings = read_standings(events)
    policies, _ = site.read_policies()  # `status` tells what is wrong with the others
    ledgers: list[Ledger] = []
    for name, declared in populations.items():
        mine = tuple(charge for charge in charges if charge.population == name)
        account = Account(name, declared, tuple(charge.loss for charge in mine))
        planned, ahead = list[Planned](), list[Loss]()
        for policy in policies:
            if policy.population == name:
                releases = _ahead(policy, charges, events)
                losses = _losses(policy, releases, charges, rows=rows)
                for release, loss in zip(releases, losses, strict=True):
                    ahead.append(loss)
                    by_rows = depends_on_records(policy) and rows is None
                    planned.append(Planned(release, account.of(loss), account.admits(*ahead), by_rows))
        undrawn = frozenset(charge.id for charge in mine if standings[charge.id].drawn is None)
        endless = tuple(policy.policy for policy in policies if policy.population == name and policy.every)
        ledgers.append(Ledger(account, mine, undrawn, tuple(planned), endless))
    return ledgers


def describe_ledger(ledger: Ledger) -> Iterator[str]:
    """A ledger in lines for a person."""
    account = ledger.account
    yield f"population {account.population}: cap {account.limit} ({account.unit}), for each person in the worst case"
    reserved = f", of it {account.words(ledger.reserved)} reserved for noise not drawn yet" if ledger.undrawn else ""
    yield f"  spent      {account.spent}{reserved}"
    yield f"  remaining  {account.left}"
    width = max([7, *(len(str(charge.id)) for charge in ledger.charges), *(len(plan.release) for plan in ledger.planned)])
    for charge in ledger.charges:
        what = "reserved" if charge.id in ledger.undrawn else "spent"
        yield f"  {charge.id!s:<{width}}  {account.words(account.of(charge.loss)):>10}  {what} {charge.noted[:10]}"
    for plan in ledger.planned:
        what = "planned" if plan.fits else "planned: will be refused"
        least = " at least, more with more rows" if plan.at_least else ""
        yield f"  {plan.release:<{width}}  {account.words(plan.cost):>10}  {what}{least}"
    if ledger.endless:
        yield f"  without end: {', '.join(ledger.endless)} (the next {MOST_AHEAD} are shown)"


def describe_exposure(site: Site, ledger: Ledger) -> Iterator[str]:
    """How many people were exposed to how much, exactly. Confidential: it says who took part how often."""
    exposure = read_exposure(site, ledger.account)
    yield "  confidential: how many people were exposed to how much (policies with a person column)"
    for amount, people in sorted(exposure.people.items(), key=lambda item: (item[0] is None, item[0] or 0)):
        yield f"  {ledger.account.words(amount):>10}  {count_of(people, 'person')}".replace("persons", "people")


def describe_room(site: Site, policy: Policy, *, rows: int | None) -> Iterator[str]:
    """What the population of a policy has spent, and what the policy's next and all its further releases would make of it."""
    if rows is None and depends_on_records(policy):
        yield "depends on the number of rows: name it with --rows"
        return
    [ledger] = read_ledgers(site, policy.population, rows=rows)
    account = ledger.account
    spent = f"population {account.population} has spent {account.spent} of {account.limit} ({account.unit})"
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
        events = registry.events
        ahead = _ahead(policy, charges, events)
    if not ahead:
        yield f"{spent}; every release of this policy is charged already, and a rerun costs nothing"
        return
    losses = _losses(policy, ahead, charges, rows=rows)
    loss = losses[0]
    verdict = "fits" if account.admits(loss) else "is refused"
    yield f"{spent}; the next release {verdict}: {account.after(loss)} after it"
    if account.of(loss) is None:
        yield _explain_infinity(policy, account)
    begun = find_series(events, policy.policy)
    if policy.publishes_parts and begun is not None and begun.policy_hash != policy.canonical_hash():
        yield f"its series began under another policy ({begun.policy_hash}): a run is refused until that one is restored"
    if policy.every or len(ahead) > 1:
        room = next((n for n in range(len(ahead)) if not account.admits(*losses[: n + 1])), len(ahead))
        which = f"of the next {len(ahead)} releases" if policy.every else f"of its {len(ahead)} releases not charged yet"
        take = f"take {account.words(account.of(loss))} each"
        if policy.publishes_parts:
            take = f"are parts of one table and take {account.words(account.sum_of(losses))} together"
        yield f"{which}, which {take}, {room if room < len(ahead) else 'all'} fit"


def describe_coming(site: Site, policy: Policy) -> Iterator[str]:
    """What the timetable of a policy opens when, as the site's registry stands; nothing where there is none."""
    with site.open_registry(read_only=True) as registry:
        events = registry.events
    yield from describe_timetable(policy, events, datetime.now(UTC))


def ledger_to_json(ledger: Ledger) -> dict[str, Any]:
    """The ledger for a script; amounts are texts, exact, and "infinity"."""
    account = ledger.account
    return {
        "population": account.population,
        "unit": account.unit,
        "cap": account.limit,
        "spent": account.spent,
        "reserved": account.words(ledger.reserved),
        "remaining": account.left,
        "charges": [
            {
                "release": str(charge.id),
                "amount": account.words(account.of(charge.loss)),
                "drawn": charge.id not in ledger.undrawn,
                "charged": charge.noted,
            }
            for charge in ledger.charges
        ],
        "planned": [{"release": plan.release, "amount": account.words(plan.cost), "fits": plan.fits} for plan in ledger.planned],
        "without_end": list(ledger.endless),
    }


def _explain_infinity(policy: Policy, account: Account) -> str:
    """Why nothing fits under the cap, and what would."""
    if not policy.adds_up:
        return NEEDS_RELEASES
    kept = " or fewer kept columns" if policy.kept_columns and account.cap.cap.scope == "table" else ""
    return f"nothing bounds this policy in {account.unit}: it needs a cap in its own definition and scope, another method{kept}"


def _losses(policy: Policy, releases: list[str], charges: list[Charge], *, rows: int | None) -> list[Loss]:
    return list_next_losses(charges, policy, [release.split("/")[1] for release in releases], records=rows)


def _ahead(policy: Policy, charges: list[Charge], events: tuple[Event, ...]) -> list[str]:
    """The releases of a policy that are still to be charged, opened revisions included; of an endless series the next ones."""
    standings = read_standings(events)
    charged = {charge.id for charge in charges}
    opened = [known for known, standing in standings.items() if known.policy == policy.policy and standing.replaced is None]
    waiting = [str(known) for known in opened if known not in charged]
    begun = {known.release for known in standings if known.policy == policy.policy}
    names = [name for name in policy.release_names if name not in begun]
    if policy.every:
        coming = islice(next_releases(policy, events, datetime.now(UTC)), max(1, MOST_AHEAD - len(waiting)))
        names = [upcoming.release for upcoming in coming]
    return [*waiting, *(f"{policy.policy}/{name}/r1" for name in names)]
