"""Which populations share people: what populations.yaml declares and charges noted, and, person by person, what the vault has.

What is declared is public to the people of a site. What is measured is confidential; for a page counts of few people are not told
exactly, and the terminal of the site has them (`ledger --overlap`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.exposure import find_person_column, read_overlap
from release_pipeline.flow.lineage import check_lineage, list_heirs, list_populations, open_population
from release_pipeline.flow.policies import Caps, read_caps
from release_pipeline.flow.site import Site
from release_pipeline.policy.loss import format_amount
from release_pipeline.privacy.catalogue import find_definition
from release_pipeline.store.ledger import Charge, list_charges
from release_pipeline.store.registry import ReleaseId

FEWEST = 10  # people that a page counts


@dataclass(frozen=True, slots=True)
class Shared:
    """A population and whose charges count for it. `ancestors`: where its people were before, as the file says; `carries`: the
    populations whose charges count here; `heirs`: where it is carried on; `columns`: what tells its persons
    apart, by the policies that were charged; `without`: its charged releases that no person column tells people of."""

    name: str
    is_declared: bool
    ancestors: tuple[str, ...]
    carries: tuple[str, ...]
    heirs: tuple[str, ...]
    columns: tuple[str, ...]
    charged: int
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sharing:
    """All of them, and in words what is wrong with the file."""

    populations: tuple[Shared, ...]
    faults: tuple[str, ...]


def read_sharing(site: Site) -> Sharing:
    """Whose charges count where, as file and registry have it; nothing of the vault is read."""
    caps = read_caps(site)
    with site.open_registry(read_only=True) as registry:
        charges = list_charges(registry)
        columns = {charge.id: find_person_column(registry, charge) for charge in charges}
    faults: list[str] = []
    try:
        check_lineage(caps, charges)
    except ReleasePipelineError as error:
        faults = [str(one) for one in getattr(error, "problems", ())] or [error.what]
    populations = list_populations(caps, charges)
    return Sharing(tuple(_share(caps, name, charges, columns) for name in populations), tuple(faults))


def measure_sharing(site: Site) -> dict[str, Any]:
    """Who is in two of them, by the keyed hashes of the vault, for a page: pairs of populations and of policies with how many
    people are in both, and the most that one person was charged for. No count of few people is exact."""
    overlap = read_overlap(site)
    policies = [(f"{policy} ({one})", f"{other} ({two})", people) for one, policy, two, other, people in overlap.policies]
    worst: list[tuple[str, str]] = []
    for what, amount in overlap.worst.items():
        definition, scope = what.split("_")
        unit = "rho" if definition == "zcdp" else "epsilon"
        worst.append((f"{unit}, {find_definition(definition).short}, {scope}", format_amount(amount)))
    return {
        "populations": [(one, other, _count(people)) for one, other, people in overlap.populations],
        "policies": [(one, other, _count(people)) for one, other, people in policies],
        "worst": worst,
        "unknown": overlap.unknown,
        "identifiers": list(overlap.identifiers.items()),
    }


def _share(caps: Caps, name: str, charges: Sequence[Charge], columns: Mapping[ReleaseId, str | None]) -> Shared:
    account, declared = open_population(caps, name, charges), caps.declared.get(name)
    mine = [charge for charge in charges if charge.population == name]
    return Shared(
        name,
        declared is not None,
        () if declared is None else declared.ancestors,
        account.carries,
        list_heirs(caps, name, charges),
        tuple(sorted({column for charge in mine if (column := columns[charge.id]) is not None})),
        len(mine),
        tuple(str(charge.id) for charge in mine if columns[charge.id] is None),
    )


def _count(people: int) -> str:
    return f"fewer than {FEWEST}" if people < FEWEST else f"{people:,}"
