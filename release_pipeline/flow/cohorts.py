"""Whether people are where populations.yaml says: in one cohort only, and in one of populations that were merged as disjoint.

By the keyed hashes of the vault, before anything is charged. What nobody can tell is refused: parallel composition holds for
people who are disjoint, not for people who are said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import TYPE_CHECKING

from release_pipeline.errors import Blocked
from release_pipeline.flow.policies import Caps, policy_of, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.flow.states import read_statuses
from release_pipeline.policy import Policy
from release_pipeline.policy.populations import list_ancestors
from release_pipeline.policy.sections import Person
from release_pipeline.stages.checks import round_up
from release_pipeline.store.exposed import Everybody, open_everybody
from release_pipeline.store.ledger import Charge, charges_of
from release_pipeline.store.registry import Event, Registry, ReleaseId

if TYPE_CHECKING:  # `ledger` and `check` ask for cohorts, too, and need no Arrow
    from release_pipeline.store.vault import ReleaseWorkspace

_OFFICER = "The privacy officer can take the claim out of populations.yaml: then everything adds up. No noise was drawn."


def check_cohort(
    site: Site, caps: Caps, registry: Registry, policy: Policy, release: ReleaseId, room: ReleaseWorkspace | None
) -> None:
    """Refuse a release of a population that these caps have in disjoint cohorts when a person of it is in another cohort, or when
    that cannot be told of every release that was charged to another one."""
    cohort = _find_cohort(caps, registry, policy, release)
    if not cohort:
        return
    if not isinstance(policy.person, Person) or room is None:
        raise _refuse(release, "its population is of disjoint cohorts, and without a person column nobody can tell who is in it.")
    binding = [charge for charge in list_binding(registry.events) if charge.population == policy.population]
    others, kept = [charge for charge in binding if charge.cohort not in ("", cohort)], room.charged()
    for other in others:
        if not kept.get(str(other.id), False):
            raise _refuse(release, f"the vault does not know who is in {other.id}: nobody can tell whether these are others.")
        if (column := find_person_column(registry, other)) != policy.person.column:
            told = f"by '{column}', and of this one by '{policy.person.column}'"
            raise _refuse(release, f"the people of {other.id} are told apart {told}, so they cannot be compared.")
    if shared := room.count_shared([str(other.id) for other in others]):
        what = f"{_count_shared(site, shared)} of its people are in another cohort of '{policy.population}'"
        raise _refuse(release, f"{what}, and populations.yaml says that nobody is.")


def _find_cohort(caps: Caps, registry: Registry, policy: Policy, release: ReleaseId) -> str:
    """The cohort that a release was charged to, or would be; empty where it adds up."""
    for charge in charges_of(registry.events):
        if charge.id == release:
            return charge.cohort
    population = caps.declared.get(policy.population)
    return "" if population is None else population.cohort_of(release.release)


def list_binding(events: Iterable[Event]) -> list[Charge]:
    """The charges whose releases were made or may still be: all but those that were given up before their noise was drawn."""
    statuses = read_statuses(events).values()
    return [
        known.charge for known in statuses if known.charge is not None and (known.replaced is None or known.drawn is not None)
    ]


def find_person_column(registry: Registry, charge: Charge) -> str | None:
    """The column that told persons apart when this was charged; None without one."""
    person = policy_of(registry, charge.policy_hash).person
    return person.column if isinstance(person, Person) else None


def prove_disjoint_merges(site: Site, population: str, release: ReleaseId) -> str:
    """Refuse when people are in two populations that were merged as disjoint, or when nobody can tell; gives the hash of the caps
    that this was looked at for, and nothing where there is no such merge."""
    caps = read_caps(site)
    merges = _list_merges(caps, population)
    if not merges:
        return ""
    with site.open_registry(read_only=True) as registry:
        charges = list_binding(registry.events)
        columns = {charge: find_person_column(registry, charge) for charge in charges}
    for name in merges:
        sides = {ancestor: _with_ancestors(caps, ancestor) for ancestor in caps.declared[name].merges or ()}
        involved = frozenset[str]().union(*sides.values())
        with open_everybody(site.vault, sorted(involved)) as everybody:
            mine = {charge: column for charge, column in columns.items() if charge.population in involved}
            if what := _find_unknown(everybody, mine) or _find_shared(site, everybody, sides):
                raise _refuse(release, f"populations.yaml says that nobody is in two of those that '{name}' merges, and {what}")
    return caps.hash


def check_merges(caps: Caps, population: str, release: ReleaseId, proved: str) -> None:
    """Refuse a charge under these caps when the disjoint merges behind it are not those that were proved."""
    if _list_merges(caps, population) and proved != caps.hash:
        raise Blocked("populations.yaml is being changed just now.", where=str(release), remedy="Try again.")


def _find_unknown(everybody: Everybody, columns: Mapping[Charge, str | None]) -> str:
    """Why nobody can tell who is in some of these charged releases, in words; empty where it can be told."""
    for charge in columns:
        if not everybody.releases.get(charge.population, {}).get(str(charge.id), False):
            return f"the people of {charge.id} cannot be compared with those of other populations."
    if len(names := sorted({f"'{column}'" for column in columns.values()})) > 1:
        return f"their people are told apart by {' and '.join(names)}, which cannot be compared."
    return ""


def _find_shared(site: Site, everybody: Everybody, sides: Mapping[str, frozenset[str]]) -> str:
    """Which of these have people in common, in words; empty where none do. What both come from is no difference of theirs."""
    for (one, some), (other, others) in combinations(sides.items(), 2):
        if shared := everybody.count_in_two(some - others, others - some):
            return f"{_count_shared(site, shared)} people are in '{one}' and in '{other}'."
    return ""


def _count_shared(site: Site, people: int) -> str:
    """How many people to name in a refusal."""
    return "some" if site.forbids_looks else f"up to {round_up(people)}"


def _list_merges(caps: Caps, population: str) -> list[str]:
    """The disjoint merges that a population comes from."""
    return [name for name in sorted(_with_ancestors(caps, population)) if name in caps.declared and caps.declared[name].disjoint]


def _with_ancestors(caps: Caps, name: str) -> frozenset[str]:
    return list_ancestors(caps.declared, name) | {name}


def _refuse(release: ReleaseId, what: str) -> Blocked:
    return Blocked(what, where=str(release), remedy=_OFFICER)
