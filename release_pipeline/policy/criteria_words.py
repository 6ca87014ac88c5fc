"""The limits of a policy on what attacks gain beyond their control groups, in words, and what passing them tells."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.model import Policy
from release_pipeline.privacy.figures import percent


def describe_criteria(policy: Policy) -> Iterator[str]:
    """Each limit."""
    for criterion, limit in policy.gates.of_criteria.items():
        words = criterion.replace("_", " ")
        if isinstance(limit, dict):
            yield from (f"{words} of {name} at most {percent(one)} beyond the control group" for name, one in limit.items())
        else:
            yield f"{words} at most {percent(limit)} beyond the control group"


def tell_criteria(policy: Policy) -> Iterator[str]:
    """That its appearing is an answer about the data, and that no claim follows from it; nothing without such a limit."""
    limits = "; ".join(describe_criteria(policy))
    if limits:
        tried = "releases with simulated noise" if policy.method.is_noisy else "the table as it would be released"
        yield (
            f"That it met limits on attacks ({limits}): these were tried by this software on {tried}, before anything was "
            "charged. That a release appears tells that its records met them. No claim follows: other attacks may gain more."
        )
