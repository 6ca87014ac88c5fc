"""What each mechanism promises, as one formal statement: the short form of docs/mechanisms.md, which has the proofs.

The catalogue has one text for each mechanism; a policy adds what its people and random parts make of it. The card, `check` and
the reviewers' page take theirs from here.
"""

from __future__ import annotations

from release_pipeline.policy.families import find_family
from release_pipeline.policy.formats import say_unit
from release_pipeline.policy.model import Policy
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.catalogue.tables import PURE_TABLES, RHO_TABLES
from release_pipeline.privacy.figures import count_things, join_names
from release_pipeline.sentences import POLICY


def _state_people(policy: Policy) -> str:
    """Which other tables it holds for, by the records of one person or household."""
    records = count_things(policy.records_per_person, "record")
    if policy.privacy_unit == "household":
        return POLICY("statement.household", records=records)
    return POLICY("statement.person", records=records) if policy.records_per_person > 1 else ""


def state_claim(policy: Policy) -> str:
    """The formal statement of a policy's mechanism, for as many records as a person has, and for random parts."""
    parts = [policy.claim.statement]
    if policy.swap is not None:
        parts.append(POLICY("statement.swapped"))
    if policy.adds_up:
        parts.append(_state_people(policy))
    if policy.tables:
        claim = RHO_TABLES if any(table.by_rho for table in policy.tables.values()) else PURE_TABLES
        parts.append(POLICY("statement.tables", tables=join_names(policy.tables), statement=claim.statement))
        if claim is RHO_TABLES and not all(table.by_rho for table in policy.tables.values()):
            parts.append(POLICY("statement.half_of_square"))
        parts.append(POLICY("statement.together", unit=say_unit(policy.unit), amount=format_nano(policy.epsilon or 0)))
    if policy.parts > 1:
        parts.append(find_family(policy.protect).state_parts(policy))
    return " ".join(part for part in parts if part)
