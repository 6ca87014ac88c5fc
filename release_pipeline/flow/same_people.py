"""Which populations have the same people, though the ledger does not add up what is charged to both: for a warning."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from release_pipeline.errors import ReleasePipelineError, StoreError
from release_pipeline.flow.lineage import list_populations, open_population
from release_pipeline.flow.policies import Caps, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import say_unit
from release_pipeline.policy.loss import Account
from release_pipeline.policy.sections import Person
from release_pipeline.stages.checks import round_up
from release_pipeline.store.exposed import count_in_both
from release_pipeline.store.ledger import Charge, list_charges

SEPARATELY = "The ledger adds up each population separately."
_WAIT_SECONDS = 1.0  # for a population whose vault another process has: a warning is not worth more


def warn_of_same_people(site: Site, policy: Policy, *, by_vault: bool = True) -> list[str]:
    """A sentence for each population that has people of this policy's population, or reads the same source, and whose charges do
    not count in its own. People are compared `by_vault`, where this account may read it: how many there are is confidential."""
    try:
        caps = read_caps(site)
    except ReleasePipelineError:  # what is wrong with them is told elsewhere
        return []
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
    return list(_warn(site, caps, policy, charges, by_vault=by_vault))


def warn_by_name(site: Site, name: str) -> list[str]:
    """The same for the policy of a name; nothing where it cannot be read."""
    try:
        return warn_of_same_people(site, site.policy(name))
    except ReleasePipelineError:
        return []


def _warn(site: Site, caps: Caps, policy: Policy, charges: Sequence[Charge], *, by_vault: bool) -> Iterator[str]:
    known = {name: open_population(caps, name, charges) for name in list_populations(caps, charges)}
    own = known.get(policy.population)
    counted = {policy.population, *(() if own is None else own.carries)}
    counted |= {name for name, account in known.items() if policy.population in account.carries}
    told = set[str]()
    for name in sorted(known.keys() - counted) if by_vault else ():
        files = [site.vault / f"{population}.duckdb" for population in (policy.population, name)]
        if not all(os.access(file, os.R_OK) for file in files):
            continue
        try:
            people = count_in_both(*files, wait=_WAIT_SECONDS)
        except StoreError as error:
            told.add(name)
            yield f"{policy.population} and {name} were not compared: {error.what} `release-pipeline ledger --overlap` does it."
            continue
        if people:
            told.add(name)
            many = "Some" if site.forbids_looks else f"Up to {round_up(people):,}"
            yield f"{many} people of {policy.population} are in {name} too. {SEPARATELY}"
    for other in site.read_policies()[0]:
        if other.population not in counted | told and _is_same_source(other, policy):
            told.add(other.population)
            spent = _describe_spent(known.get(other.population))
            yield f"{other.policy} reads the same source, and is charged to {other.population}{spent}. {SEPARATELY}"


def _describe_spent(account: Account | None) -> str:
    return "" if account is None else f", of which {account.spent} of {account.limit} ({say_unit(account.unit)}) is spent"


def _is_same_source(one: Policy, other: Policy) -> bool:
    """Whether they read the same table, and do not tell its people apart by different columns."""
    columns = {policy.person.column for policy in (one, other) if isinstance(policy.person, Person)}
    plain = [policy.source.model_copy(update={"release_column": None}) for policy in (one, other)]
    return plain[0] == plain[1] and len(columns) <= 1
