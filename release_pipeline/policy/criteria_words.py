"""The limits of a policy on what attacks find, in words, and what passing them tells."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.model import Policy
from release_pipeline.privacy.figures import join_names, percent
from release_pipeline.sentences import POLICY


def describe_criteria(policy: Policy) -> Iterator[str]:
    """Each limit."""
    gates = policy.gates
    if gates.singling_out is not None:
        yield POLICY("limit.singling_out", limit=percent(gates.singling_out))
    if gates.linkability is not None:
        yield POLICY("limit.linkability", limit=percent(gates.linkability))
    if isinstance(gates.inference, dict):
        yield from (POLICY("limit.inference_of", column=name, limit=percent(one)) for name, one in gates.inference.items())
    elif gates.inference is not None:
        yield POLICY("limit.inference", limit=percent(gates.inference))


def describe_linkage(policy: Policy) -> Iterator[str]:
    """The limit on linkage; nothing without one."""
    if policy.gates.linkage is not None:
        yield POLICY("limit.linkage", limit=percent(policy.gates.linkage))


def tell_linkage(policy: Policy) -> Iterator[str]:
    """What passing the limit on linkage tells, and what does not follow; nothing without one, or of rows that nobody has."""
    if policy.gates.linkage is not None and not policy.protect.is_synthetic:
        yield POLICY("uncovered.linkage", limit=percent(policy.gates.linkage))


def explain_criteria(policy: Policy) -> Iterator[str]:
    """What figure the limits are on; nothing without one."""
    if policy.gates.of_criteria:
        yield POLICY("limit.upper_end")


def tell_criteria(policy: Policy) -> Iterator[str]:
    """That its appearing is an answer about the data, and that no claim follows from it; nothing without such a limit."""
    limits = list(describe_criteria(policy))
    if limits and policy.method.is_noisy:
        yield POLICY("uncovered.criteria_noisy", limits=join_names(limits, "semicolon"))
    elif limits:
        yield POLICY("uncovered.criteria_exact", limits=join_names(limits, "semicolon"))
