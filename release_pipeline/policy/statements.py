"""What each mechanism promises, as one formal statement: the short form of docs/mechanisms.md, which has the proofs.

The catalogue has one text for each mechanism; a policy adds what its people and random parts make of it. The card, `check` and
the reviewers' page take theirs from here.
"""

from __future__ import annotations

from release_pipeline.policy.model import Policy, ProtectClasses

SCALES_FIXED = (
    "The claim holds with the noise scales fixed at the actual data: were they calculated anew on the neighbouring table, "
    "nothing would bound what can be told (40 people, idp-cbls, k 5, claimed epsilon 0.01: an attack then proves at least 4.8)."
)


def state_claim(policy: Policy) -> str:
    """The formal statement of a policy's mechanism, for as many records as a person has, and for random parts."""
    protect = policy.protect
    parts = [policy.claim.statement]
    if policy.records_per_person > 1 and policy.adds_up:
        parts.append(f"It holds as well for tables that differ in up to {policy.records_per_person} records of one person.")
    if policy.parts > 1 and isinstance(protect, ProtectClasses):
        parts.append("A class is all records of the release with the same labels, whichever random part they are of.")
    elif policy.parts > 1 and policy.adds_up:
        parts.append(
            "M does so for each random part of the records, and this is said of all parts together, in whatever releases."
        )
    return " ".join(parts)
