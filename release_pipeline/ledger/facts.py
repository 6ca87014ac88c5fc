"""The public facts of a candidate: made once from its charge and counts of rows, kept in its evidence and in the registry.

Epsilon is whole nano-epsilon here, as it was charged. How it is written elsewhere is decided here alone: as a number in evidence
and in Dagster, as a text in the registry, where no float can stand, and exactly (`format_nano`) in words and cards.
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
    """What may be told to everybody. `epsilon` and `series_epsilon` are nano-epsilon, None for no bound or a method without;
    under zcdp they hold at `delta`, and `rho` and `series_rho` are what adds up, nano-rho;
    `levels` those that labels are released on;
    `looks` how many looks at the data came before the charge, `together` how many tables of several columns were counted."""

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
        """As evidence and Dagster have them."""
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
)  # of some releases; left out where they say nothing


def read_facts(content: Mapping[str, Any], *, where: str) -> PublicFacts:
    """The facts as evidence or the registry has them."""
    return read_as(PublicFacts, content, where=where)


def note_facts(facts: Mapping[str, Any], digest: str) -> dict[str, Any]:
    """The facts of a candidate's evidence as the registry notes them, where no float can stand, with the candidate's hash."""
    content = {name: f"{fact:.12g}" if isinstance(fact, float) else fact for name, fact in facts.items()}
    return {**content, "candidate_hash": digest}


def claimed_nano(policy: Policy, charge: Charge | None) -> int | None:
    """What a release claims, nano-epsilon or nano-rho: what it was charged in its own definition and scope. What does not add up
    is charged by releases: there it is as the policy has it."""
    if charge is None or not policy.adds_up:
        return policy.epsilon
    return charge.loss.of(policy.definition, policy.protect.scope)


def describe_bound(policy: Policy, charge: Charge, scope: str) -> str:
    """What a release loses in all, of each column or of the whole table, in words."""
    nano = charge.loss.of(policy.definition, scope) if policy.adds_up else None
    return "not bounded" if nano is None else f"at most {amount_words(policy, nano).removesuffix(',')} in all"
