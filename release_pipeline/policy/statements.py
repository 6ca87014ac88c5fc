"""What each mechanism promises, as one formal statement: the short form of docs/mechanisms.md, which has the proofs.

The catalogue has one text for each mechanism; a policy adds what its people and random parts make of it. The card, `check` and
the reviewers' page take theirs from here.
"""

from __future__ import annotations

from release_pipeline.policy.families import find_family
from release_pipeline.policy.model import Policy


def state_claim(policy: Policy) -> str:
    """The formal statement of a policy's mechanism, for as many records as a person has, and for random parts."""
    parts = [policy.claim.statement]
    if policy.records_per_person > 1 and policy.adds_up:
        parts.append(f"It holds as well for tables that differ in up to {policy.records_per_person} records of one person.")
    if policy.parts > 1:
        parts.append(find_family(policy.protect).state_parts(policy))
    return " ".join(part for part in parts if part)
