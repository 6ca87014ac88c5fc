"""What each mechanism promises, as one formal statement: the short form of docs/mechanisms.md, which has the proofs.

The catalogue has one text for each mechanism; a policy adds what its people and random parts make of it. The card, `check` and
the reviewers' page take theirs from here.
"""

from __future__ import annotations

from release_pipeline.policy.families import find_family
from release_pipeline.policy.model import Policy
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.catalogue.tables import PURE_TABLES, RHO_TABLES
from release_pipeline.privacy.figures import count_of


def _state_people(policy: Policy) -> str:
    """Which other tables it holds for, by the records of one person or household."""
    if policy.slots is not None:
        filled = f"every household has {count_of(policy.slots, 'record')}, empty ones included"
        replaced = "one household is replaced by another one, of whatever size up to"
        return f"It holds as well for tables in which {replaced} {policy.slots}: {filled}."
    records = count_of(policy.records_per_person, "record")
    differ = f"It holds as well for tables that differ in up to {records} of one"
    if policy.of_households:
        return f"{differ} household; it is for households of equal size, and how many records one has is not protected."
    return f"{differ} person." if policy.records_per_person > 1 else ""


def state_claim(policy: Policy) -> str:
    """The formal statement of a policy's mechanism, for as many records as a person has, and for random parts."""
    parts = [policy.claim.statement]
    if policy.adds_up:
        parts.append(_state_people(policy))
    if policy.tables:
        claim = RHO_TABLES if any(table.by_rho for table in policy.tables.values()) else PURE_TABLES
        parts.append(f"Beside it, of the tables {', '.join(policy.tables)}: {claim.statement}")
        if claim is RHO_TABLES and not all(table.by_rho for table in policy.tables.values()):
            parts.append("Of a table with an epsilon of its own rho is the half of its square.")
        parts.append(f"What both tell together loses the sum, {policy.unit} {format_nano(policy.epsilon or 0)} for one person.")
    if policy.parts > 1:
        parts.append(find_family(policy.protect).state_parts(policy))
    return " ".join(part for part in parts if part)
