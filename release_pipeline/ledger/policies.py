"""Policies and populations as the registry has them, whose charges count where, and which releases come next. Every version that
was ever used is there, with its text and its hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from release_pipeline.errors import Blocked, InvalidArgument, PolicyInvalid
from release_pipeline.ledger.office import find_repairs
from release_pipeline.ledger.states import POLICY, read_state
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.basis.figures import count_of
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import Plain
from release_pipeline.policy.loading.load import list_files, parse_policy, read_canonical, read_policy, reader_beside
from release_pipeline.policy.loading.populations import Cap, Population, find_population, list_ancestors, load_populations
from release_pipeline.policy.plans.calendar import Upcoming, list_upcoming
from release_pipeline.policy.plans.loss import Account
from release_pipeline.policy.rules.rules import find_unproved
from release_pipeline.policy.values.formats import name_some
from release_pipeline.store.ledger import Charge, charges_of
from release_pipeline.store.registry import Event, Registry, ReleaseId, canonical_json
from release_pipeline.store.site import Site


@dataclass(frozen=True, slots=True)
class NotedPolicy:
    """A policy as its event has it. `text`: its canonical form at that time, whose hash is `hash`; today's form may differ."""

    name: str
    hash: str
    text: str
    policy: Policy


def record_policy(site: Site, registry: Registry, policy: Policy) -> None:
    """Note the policy with its text if it is new or has changed, so that it can always be read and approved."""
    known = [event.content["hash"] for event in _policy_events(registry.events) if event.content["policy"] == policy.policy]
    if known and known[-1] == policy.canonical_hash():
        return
    file = site.policy_file(policy.policy)
    yaml, read = read_policy(file), reader_beside(file)
    files = {name: read(name) for name in list_files(yaml)}
    if parse_policy(yaml, name=policy.policy, read=files.__getitem__) != policy:
        raise Blocked("it is being changed just now.", where=policy.policy, remedy="Try again.")
    registry.add(
        POLICY,
        policy=policy.policy,
        hash=policy.canonical_hash(),
        population=policy.population,
        text=policy.canonical_json(),
        columns=list(policy.columns),
        yaml=yaml,
        **dict[str, Any]({"files": files} if files else {}),
    )


def policy_of(registry: Registry, digest: str) -> Policy:
    """Return the policy with this hash, as its event has it; raises if no event has it."""
    for event in _policy_events(registry.events):
        if event.content["hash"] == digest:
            return _read_noted(event).policy
    raise Blocked("the registry does not have the policy that this was made under.", where=digest[:12])


def find_noted(events: Iterable[Event], digest: str) -> NotedPolicy | None:
    """Return the policy with this hash and its canonical form at that time; None if no event has it."""
    return next((_read_noted(event) for event in _policy_events(events) if event.content["hash"] == digest), None)


def list_policies(events: Iterable[Event]) -> list[NotedPolicy]:
    """Return every version of every policy that was ever noted, in order."""
    return [_read_noted(event) for event in _policy_events(events)]


def _policy_events(events: Iterable[Event]) -> Iterator[Event]:
    return (event for event in events if event.kind == POLICY)


def _read_noted(event: Event) -> NotedPolicy:
    """Return the policy of an event, read from its canonical form and not checked by today's rules."""
    noted = event.content
    name, digest, text = str(noted["policy"]), str(noted["hash"]), str(noted["text"])
    if hashlib.sha256(text.encode()).hexdigest() != digest:
        raise Blocked("the hash of the policy in the registry is not that of its text.", where=f"event {event.number}")
    try:
        policy = read_canonical(json.loads(text), noted["columns"])
    except InvalidArgument as error:
        raise Blocked(error.what, where=f"policy {name}, event {event.number}") from None
    if (policy.policy, policy.population) != (name, noted["population"]):
        raise Blocked("the registry calls a policy or its population other than its text does.", where=f"event {event.number}")
    return NotedPolicy(name, digest, text, policy)


def find_unproved_claims(policy: Policy) -> Iterator[str]:
    """Yield a sentence for each reason why what a past policy claims is no longer proved; such a policy is neither approved nor
    published."""
    for _, what, remedy in find_unproved(policy):
        yield f"Its policy claims what this version knows not to be proved: {what} {remedy}".rstrip()


@dataclass(frozen=True, slots=True)
class Caps:
    """The caps of populations.yaml, read once: what is hashed is what is used."""

    file: Path
    declared: Mapping[str, Population]

    @property
    def text(self) -> str:
        """Return the content as canonical JSON, independent of comments and order."""
        return canonical_json({name: known.canonical for name, known in self.declared.items()})

    @property
    def hash(self) -> str:
        """Return the hash of that text, which the officer approves."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def of(self, policy: Policy) -> Population:
        """Return the population whose budget the policy spends; raises if it is not declared."""
        return find_population(self.declared, policy.population, file=self.file)


def read_caps(site: Site) -> Caps:
    """Return the current caps."""
    return Caps(site.populations_file, load_populations(site.populations_file))


# Whose charges count where: populations that were renamed, split or merged.
#
# populations.yaml declares it, the officer signs it, and every charge notes which other populations' charges counted with it.
# Charges that were once carried are carried for ever: no budget starts again because a file was rewritten.


def open_population(caps: Caps, name: str, charges: Sequence[Charge]) -> Account:
    """Return the account of a population, with the charges to it and its ancestors. One that is no longer declared has the cap
    that its last charge noted; one that was never declared is refused."""
    declared = caps.declared.get(name) or _read_last_cap(name, charges) or find_population(caps.declared, name, file=caps.file)
    carries = tuple(sorted(list_ancestors(caps.declared, name)))
    losses = tuple(charge.loss for charge in charges if charge.population in (name, *carries))
    return Account(name, declared, losses, carries)


def list_populations(caps: Caps, charges: Iterable[Charge]) -> list[str]:
    """Return every population that is declared, and then those that were charged and no longer are, by name."""
    return [*caps.declared, *sorted({charge.population for charge in charges} - set(caps.declared))]


def list_heirs(caps: Caps, name: str, charges: Iterable[Charge]) -> tuple[str, ...]:
    """Return the successors that carry on the charges to this population, by today's file or as a charge noted: the population is
    no longer charged itself."""
    heirs = {other for other in caps.declared if name in list_ancestors(caps.declared, other)}
    return tuple(sorted(heirs | {charge.population for charge in charges if name in charge.carries}))


def check_lineage(caps: Caps, charges: Sequence[Charge]) -> None:
    """Refuse a populations.yaml that forgets what people were charged: raises `PolicyInvalid` with everything that is wrong."""
    if faults := list(_find_faults(caps, charges)):
        raise PolicyInvalid(
            faults[0] if len(faults) == 1 else "it forgets what people were charged.",
            problems=() if len(faults) == 1 else tuple(faults),
            where=str(caps.file),
            remedy="The privacy officer corrects it and approves it. Nothing was charged.",
        )


def check_population(caps: Caps, population: str, release: ReleaseId, charges: Sequence[Charge]) -> None:
    """Refuse to charge a population with successors, or a revision whose earlier revisions were charged to other people."""
    if heirs := list_heirs(caps, population, charges):
        raise Blocked(
            f"the population '{population}' is carried on by {', '.join(heirs)}, so nothing is charged to it any more.",
            where=str(release),
            remedy="Name the population in the policy that its people are in now; the privacy officer approves it.",
        )
    carried = list_ancestors(caps.declared, population) | {population}
    for charge in charges:
        is_earlier = (charge.id.policy, charge.id.release) == (release.policy, release.release)
        if is_earlier and charge.population not in carried:
            raise Blocked(
                f"{charge.id} was charged to the population '{charge.population}', and a correction is about the same people: "
                f"'{population}' does not carry on what they were charged.",
                where=str(release),
                remedy=f"Name that population in the policy; or the privacy officer says in {caps.file.name} that '{population}' "
                f"was '{charge.population}' before (`was`), and approves it.",
            )


def _find_faults(caps: Caps, charges: Sequence[Charge]) -> Iterator[str]:
    charged = {charge.population for charge in charges}
    named = {ancestor for population in caps.declared.values() for ancestor in population.ancestors}
    for name, population in caps.declared.items():
        for ancestor in population.ancestors:
            if ancestor not in charged and ancestor not in caps.declared:
                yield (
                    f"'{name}' comes from '{ancestor}', which is not declared and was never charged. Declare '{ancestor}' with "
                    f"its cap, or take it out of the entry of '{name}'."
                )
    for name in sorted(charged - named - set(caps.declared)):
        yield (
            f"the population '{name}' was charged and is not declared any more: its people's budget would begin anew. Declare it "
            f"again, or say which population its people are in now, with `was: {name}` or `from: [{name}, ...]`."
        )
    noted = {(charge.population, ancestor) for charge in charges for ancestor in charge.carries}
    for name in caps.declared:
        carried = list_ancestors(caps.declared, name) | {name}
        for before, ancestor in sorted(noted):
            if before in carried and ancestor not in carried:
                yield (
                    f"'{name}' no longer carries what '{ancestor}' was charged, which counted when '{before}' was charged: keep "
                    f"the entry of '{before}' with its `was` or `from`."
                )


def _read_last_cap(name: str, charges: Sequence[Charge]) -> Population | None:
    """Return the cap that the last charge to a population noted; None if it was never charged."""
    last = next((charge for charge in reversed(charges) if charge.population == name), None)
    if last is None:
        return None
    if last.unit == "releases":
        return Population(cap=Cap(releases=int(last.cap)))
    amount, definition, scope = last.unit.split(", ")  # "epsilon" or "rho"
    parts = {amount: Epsilon.of(last.cap), "definition": definition.lower(), "scope": scope}
    return Population(cap=Cap.model_validate(parts))


# Which releases of a policy come next, and when, as the registry has it. Reads no source.


MOST_TOLD = 4  # of the next releases


def next_release(policy: Policy, events: tuple[Event, ...], now: datetime) -> Upcoming | None:
    """Return the next release of a policy by the registry's events; None if there is none."""
    return next(next_releases(policy, events, now), None)


def next_releases(policy: Policy, events: tuple[Event, ...], now: datetime) -> Iterator[Upcoming]:
    """Yield the next releases of a policy in order; a series of periods has no end."""
    first: dict[str, datetime] = {}
    repaired = find_repairs(events)
    for event in events:
        if event.release is not None and event.release.policy == policy.policy:
            first.setdefault(event.release.release, repaired.get(event.number, event.moment))
    charged = {charge.id.release for charge in charges_of(events) if charge.id.policy == policy.policy}
    return list_upcoming(policy, first, charged=charged, seen=_first_seen(policy, events), now=now)


def describe_due(upcoming: Upcoming, policy: Policy) -> str:
    """Return a sentence on when a release is due, and what is left out before it."""
    if upcoming.due is None:
        return ""
    due = f"{'not before' if upcoming.earliest else 'due'} {words_of(upcoming.due)}"
    if not (out := upcoming.left_out):
        return due
    names = name_some(out) if len(out) <= MOST_TOLD else f"{out[0]} to {out[-1]} ({count_of(len(out), policy.every or '')})"
    return f"{due}; {names}: before a release that is charged, opened by `release-pipeline run` alone"


def _first_seen(policy: Policy, events: tuple[Event, ...]) -> datetime | None:
    """Return since when the site knows the policy; for a series of periods, since when it has had these periods with the same
    `first`. No period that ended before is opened because the policy was once a different one."""
    seen: datetime | None = None
    series = (policy.every, policy.first)
    repaired = find_repairs(events)
    for event in read_state(events).policies.get(policy.policy, ()):
        goes_on = not policy.every or _series_in(event) == series
        seen = (seen or repaired.get(event.number, event.moment)) if goes_on else None
    return seen


def _series_in(event: Event) -> tuple[Plain, Plain]:
    """Return the period and the first release of a series, in the policy that an event noted."""
    releases: Plain = json.loads(event.content.get("text", "{}")).get("releases")
    return (releases.get("every"), releases.get("first")) if isinstance(releases, dict) else (None, None)


def words_of(moment: datetime) -> str:
    """Return a moment as text, in UTC to the minute."""
    return moment.strftime("%Y-%m-%d %H:%M UTC")
