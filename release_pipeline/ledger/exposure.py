"""The exposure of the same people, person by person, and whether two releases differ by too few of them. Confidential.

People are keyed hashes in the vault (AES of HMAC-SHA256, cut to 128 bits): those of every release that was charged. Only the
worst case is shown outside, which the ledger has from declared facts only: as if the same person had been in every release.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from release_pipeline.errors import ReleasePipelineError, StoreError
from release_pipeline.ledger.policies import Caps, list_populations, open_population, policy_of, read_caps
from release_pipeline.mechanisms.basis.figures import count_of
from release_pipeline.mechanisms.catalogue import find_definition
from release_pipeline.mechanisms.catalogue.spec import ZCDP
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.loss import LOSSES, Account, format_amount
from release_pipeline.policy.values.formats import say_unit
from release_pipeline.rows.checks import round_up
from release_pipeline.store.exposed import count_in_both, count_people, open_everybody
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.site import Site


@dataclass(frozen=True, slots=True)
class Exposure:
    """The number of people of a population by their exposure, in the cap's unit (None is infinity)."""

    people: Mapping[int | None, int]

    @property
    def in_order(self) -> list[tuple[int | None, int]]:
        """Return amounts and how many people have each, the least first."""
        return sorted(self.people.items(), key=lambda item: (item[0] is None, item[0] or 0))

    @property
    def worst(self) -> int | None:
        """Return the most that one person was exposed to."""
        return None if None in self.people else max((amount or 0 for amount in self.people), default=0)


def read_exposure(site: Site, account: Account) -> Exposure:
    """Return the exact exposure of each person: the sum over the releases that include the person and were charged to this
    population itself, not to those whose charges it carries. Only policies with a person column count."""
    with site.open_registry(read_only=True) as registry:
        charges = {str(charge.id): charge for charge in list_charges(registry, account.population)}
    people: Counter[int | None] = Counter()
    for releases, count in count_people(site.vault, account.population):
        people[account.sum_of(charges[release].loss for release in releases if release in charges)] += count
    return Exposure(people)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The number of people in two populations or policies, and the most that one person was charged for over all of them, by
    definition and scope in nano-epsilon (None is infinity). `unknown`: charged releases whose people were not stored;
    `identifiers`: by person column, the populations whose persons it identifies."""

    populations: Sequence[tuple[str, str, int]]
    policies: Sequence[tuple[str, str, str, str, int]]
    worst: Mapping[str, int | None]
    unknown: tuple[str, ...]
    identifiers: Mapping[str, tuple[str, ...]]


def read_overlap(site: Site) -> Overlap:
    """Return the overlap, person by person, of all populations that were ever charged, by the keyed hashes of the vault."""
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
        columns = {charge: policy_of(registry, charge.policy_hash).person_column for charge in charges}
    names = sorted({charge.population for charge in charges})
    losses = {(charge.population, str(charge.id)): {what: getattr(charge.loss, what) for what in LOSSES} for charge in charges}
    with open_everybody(site.vault, names) as everybody:
        nobody = {str(charge.id) for charge in charges if not everybody.releases.get(charge.population, {}).get(str(charge.id))}
        return Overlap(
            everybody.count_in_populations(),
            everybody.count_in_policies(),
            everybody.sum_worst(losses),
            tuple(sorted(nobody)),
            {
                column: tuple(sorted({charge.population for charge in charges if columns[charge] == column}))
                for column in sorted({column for column in columns.values() if column is not None})
            },
        )


def describe_overlap(overlap: Overlap) -> Iterator[str]:
    """Yield the lines that `ledger --overlap` prints."""
    yield "confidential: who is in two populations or policies, and the most that one person was charged for in all"
    for one, other, people in overlap.populations:
        yield f"  {one} and {other}: {_count(people)} in both"
    for population, policy, other_population, other_policy, people in overlap.policies:
        where = f"policies {policy} and {other_policy} of {population}"
        if population != other_population:
            where = f"policies {policy} ({population}) and {other_policy} ({other_population})"
        yield f"  {where}: {_count(people)} in both"
    if not overlap.policies:
        yield "  nobody is known to be in two"
    for what, amount in overlap.worst.items():
        definition, scope = what.split("_")
        unit = "rho" if definition == ZCDP.key else "epsilon"
        yield f"  at most {format_amount(amount):>10}  {unit}, {find_definition(definition).short}, {scope}, of one person"
    if len(overlap.identifiers) > 1:
        told = "; ".join(f"'{column}' in {', '.join(names)}" for column, names in overlap.identifiers.items())
        yield f"  not compared: persons that other columns tell apart ({told})"
    if overlap.unknown:
        why = "no person column, or lost with the site"
        yield f"  not compared with other populations: {', '.join(overlap.unknown)} ({why})"


def _count(people: int) -> str:
    return count_of(people, "person").replace("persons", "people")


# Which populations have the same people, though the ledger does not add up what is charged to both:
# for a warning.


SEPARATELY = "The ledger adds up each population separately."
_WAIT_SECONDS = 1.0  # for a vault that another process holds: a warning is not worth more


def warn_of_same_people(site: Site, policy: Policy, *, by_vault: bool = True) -> list[str]:
    """Return a sentence for each population that has people of this policy's population, or reads the same source, and whose
    charges do not count in its own. People are compared `by_vault` if this account may read it: how many there are is
    confidential."""
    try:
        caps = read_caps(site)
    except ReleasePipelineError:  # other commands report what is wrong with them
        return []
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
    return list(_warn(site, caps, policy, charges, by_vault=by_vault))


def warn_by_name(site: Site, name: str) -> list[str]:
    """Return the warnings of `warn_of_same_people` for the policy of a name; empty if the policy cannot be read."""
    try:
        return warn_of_same_people(site, site.policy(name))
    except ReleasePipelineError:
        return []


def _warn(site: Site, caps: Caps, policy: Policy, charges: Sequence[Charge], *, by_vault: bool) -> Iterator[str]:
    known = {name: open_population(caps, name, charges) for name in list_populations(caps, charges)}
    own = known.get(policy.population)
    counted = {policy.population, *(() if own is None else own.carries)}
    counted |= {name for name, account in known.items() if policy.population in account.carries}
    warned_of = set[str]()
    for name in sorted(known.keys() - counted) if by_vault else ():
        files = [site.vault / f"{population}.duckdb" for population in (policy.population, name)]
        if not all(os.access(file, os.R_OK) for file in files):
            continue
        try:
            people = count_in_both(*files, wait=_WAIT_SECONDS)
        except StoreError as error:
            warned_of.add(name)
            yield f"{policy.population} and {name} were not compared: {error.what} `release-pipeline ledger --overlap` does it."
            continue
        if people:
            warned_of.add(name)
            many = "Some" if site.forbids_looks else f"Up to {round_up(people):,}"
            yield f"{many} people of {policy.population} are in {name} too. {SEPARATELY}"
    for other in site.read_policies()[0]:
        if other.population not in counted | warned_of and _is_same_source(other, policy):
            warned_of.add(other.population)
            spent = _describe_spent(known.get(other.population))
            yield f"{other.policy} reads the same source, and is charged to {other.population}{spent}. {SEPARATELY}"


def _describe_spent(account: Account | None) -> str:
    return "" if account is None else f", of which {account.spent} of {account.limit} ({say_unit(account.unit)}) is spent"


def _is_same_source(one: Policy, other: Policy) -> bool:
    """Return whether both policies read the same table, and do not identify its people by different columns."""
    columns = {policy.person_column for policy in (one, other)} - {None}
    plain = [policy.source.model_copy(update={"release_column": None}) for policy in (one, other)]
    return plain[0] == plain[1] and len(columns) <= 1
