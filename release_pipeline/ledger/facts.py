"""The public facts of a candidate: made once from its charge and counts of rows, stored in its evidence and in the registry.

Epsilon is whole nano-epsilon here, as it was charged. Only this module decides how it is written elsewhere: as a number in
evidence and in Dagster, as a text in the registry, which takes no floats, and exactly (`format_nano`) in sentences and cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator

from release_pipeline.mechanisms.accounting.budget import NANO
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import read_as
from release_pipeline.policy.families.base import amount_words
from release_pipeline.store.ledger import Charge

EPSILONS = ("epsilon", "series_epsilon", "rho", "series_rho")


def _nano(content: Any) -> Any:
    return None if content is None else round(Decimal(str(content)) * NANO)


Nano: TypeAlias = Annotated[int | None, BeforeValidator(_nano)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFacts:
    """The facts that may be shown to everybody. `epsilon` and `series_epsilon` are nano-epsilon, None for no bound or a method
    without; under zcdp they hold at `delta`, and `rho` and `series_rho` are what adds up, nano-rho; `levels` the levels that
    labels are released on; `looks` how many trials on the data came before the charge, `together` how many tables of several
    columns were counted."""

    release: str
    claim: str
    definition: str
    scope: str
    method: str
    epsilon: Nano
    k: int | None
    anonymity_k: int | None
    column_bound: str
    table_bound: str
    series_epsilon: Nano
    population_spent: str
    policy_hash: str
    rows_in: int
    rows_out: int
    cells_blanked: int
    parts: int | None = None
    levels: Mapping[str, str] = field(default_factory=dict[str, str])
    delta: str | None = None
    rho: Nano = None
    series_rho: Nano = None
    looks: int = 0
    together: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the facts as evidence and Dagster have them."""
        content = {name: fact for name, fact in asdict(self).items() if name not in _ADDED or fact}
        amounts = {name: content[name] for name in EPSILONS if name in content}
        return content | {name: None if amount is None else amount / NANO for name, amount in amounts.items()}


_ADDED = (
    "parts",
    "levels",
    "delta",
    "rho",
    "series_rho",
    "looks",
    "together",
)  # only some releases have these; left out if empty


def read_facts(content: Mapping[str, Any], *, where: str) -> PublicFacts:
    """Return the facts stored in evidence or the registry; raises if `content` has another form."""
    return read_as(PublicFacts, content, where=where)


def note_facts(facts: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """Return the facts of a candidate's evidence in the registry's form, without floats and with the candidate's hash."""
    content = {name: f"{fact:.12g}" if isinstance(fact, float) else fact for name, fact in facts.items()}
    return {**content, "candidate_hash": digest}


def claimed_nano(policy: Policy, charge: Charge | None) -> int | None:
    """Return what a release claims, in nano-epsilon or nano-rho: its charge, in its own definition and scope. A claim that does
    not add up is charged by releases; then it is the policy's value."""
    if charge is None or not policy.adds_up:
        return policy.epsilon
    return charge.loss.of(policy.definition, policy.protect.scope)


def describe_bound(policy: Policy, charge: Charge, scope: str) -> str:
    """Return a sentence on what a release loses in all, for each column or for the whole table."""
    nano = charge.loss.of(policy.definition, scope) if policy.adds_up else None
    return "not bounded" if nano is None else f"at most {amount_words(policy, nano).removesuffix(',')} in all"
