"""Whose charges count where: populations that were renamed, split or merged.

populations.yaml says it, the officer signs it, and every charge notes which other populations' charges counted with it. What was
once carried is carried for ever: nobody's budget begins anew because a file was written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from release_pipeline.errors import Blocked, PolicyInvalid
from release_pipeline.flow.policies import Caps
from release_pipeline.policy.loss import Account
from release_pipeline.policy.populations import Cap, Population, find_population, list_ancestors
from release_pipeline.privacy import Epsilon
from release_pipeline.store.ledger import Charge
from release_pipeline.store.registry import ReleaseId


def open_population(caps: Caps, name: str, charges: Sequence[Charge]) -> Account:
    """The account of a population with what it and its ancestors were charged. One that is no longer declared has the cap that
    its last charge noted; one that never was is refused."""
    declared = caps.declared.get(name) or _read_last_cap(name, charges) or find_population(caps.declared, name, file=caps.file)
    carries = tuple(sorted(list_ancestors(caps.declared, name)))
    losses = tuple(charge.loss for charge in charges if charge.population in (name, *carries))
    return Account(name, declared, losses, carries)


def list_populations(caps: Caps, charges: Iterable[Charge]) -> list[str]:
    """Every population that is declared, and then those that were charged and no longer are, by name."""
    return [*caps.declared, *sorted({charge.population for charge in charges} - set(caps.declared))]


def list_heirs(caps: Caps, name: str, charges: Iterable[Charge]) -> tuple[str, ...]:
    """The populations that carry on what this one was charged: it is not charged any more. As the file says now, or as a charge
    noted."""
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
    """Refuse to charge a population that others carry on, or a revision whose earlier ones other people were charged for."""
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
    """The cap that the last charge to a population noted, if it was ever charged."""
    last = next((charge for charge in reversed(charges) if charge.population == name), None)
    if last is None:
        return None
    if last.unit == "releases":
        return Population(cap=Cap(releases=int(last.cap)))
    amount, definition, scope = last.unit.split(", ")  # "epsilon" or "rho"
    parts = {amount: Epsilon.of(last.cap), "definition": definition.lower(), "scope": scope}
    return Population(cap=Cap.model_validate(parts))
