"""The gates of a policy that are judged on the records, in words, and what passing them reveals."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from decimal import Decimal

from release_pipeline.policy.formats import name_some
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import ByValueOptions, ColumnOptions
from release_pipeline.policy.sections import Gates
from release_pipeline.privacy.figures import format_percent, join_names, percent
from release_pipeline.sentences import POLICY

RISKY = Decimal("0.1")  # of rows that are linked: more is "excessively risky" (KEA18)
# The number of rows is public, and a limit on the released table follows from what was released.
_NOT_OF_RECORDS = {"min_rows", "anonymity_k", "l_diversity"}
_OF_RECORDS = sorted(  # of this release, then of two
    (name for name in Gates.model_fields if name not in _NOT_OF_RECORDS), key=lambda name: name == "differencing_below"
)


def describe_record_gates(policy: Policy) -> Iterator[str]:
    """Each gate that is judged on the records before the charge: that a release appears tells that they passed it."""
    yield from _describe_limits(policy, _OF_RECORDS)


def explain_criteria(policy: Policy) -> Iterator[str]:
    """What figure the limits on attacks are on, and where linkage is not tried; nothing without such a limit."""
    if policy.gates.of_criteria:
        yield POLICY("criteria.upper_end")
    limit = policy.gates.linkage
    if limit is None:
        return
    if policy.protect.is_synthetic:
        yield POLICY("criteria.synthetic")
    elif policy.swap is not None and keeps_linkage(policy, limit):
        yield POLICY("criteria.swapped", share=format_percent(1 / policy.swap.k))
    elif proposal := propose_swap(policy, limit):
        yield POLICY("criteria.proposed", proposal=proposal.rstrip("."))


def keeps_linkage(policy: Policy, limit: Decimal) -> bool:
    """Whether a limit on linkage holds for whatever records: no row of a synthetic table has an original, and a value of
    a row is that of the person whom somebody names by the rest of it in at most one in k (docs/guarantees.md)."""
    return policy.protect.is_synthetic or (policy.swap is not None and limit * policy.swap.k >= 1)


def propose_swap(policy: Policy, limit: Decimal | None) -> str:
    """With which blocks swapping would keep a limit on linkage; nothing where the method cannot swap, or there is no limit that
    blocks could keep."""
    if not limit or not isinstance(policy.protect, ColumnOptions | ByValueOptions) or policy.parts > 1:
        return ""
    k = max(math.ceil(1 / limit), 2)
    return POLICY("criteria.propose", k=k, limit=percent(limit))


def tell_linkage(policy: Policy) -> Iterator[str]:
    """What passing the limit on linkage reveals, and what does not follow; nothing without one, or where the method keeps it."""
    limit = policy.gates.linkage
    if limit is not None and not keeps_linkage(policy, limit):
        yield POLICY("uncovered.linkage", limit=percent(limit))


def tell_criteria(policy: Policy) -> Iterator[str]:
    """That its appearing is an answer about the data, and that no claim follows from it; nothing without such a limit."""
    limits = list(_describe_limits(policy, policy.gates.of_criteria))
    if limits and policy.method.is_noisy:
        yield POLICY("uncovered.criteria_noisy", limits=join_names(limits, "semicolon"))
    elif limits:
        yield POLICY("uncovered.criteria_exact", limits=join_names(limits, "semicolon"))


def _describe_limits(policy: Policy, names: Container[str]) -> Iterator[str]:
    """The limits that are set under these names, the columns with the same limit together."""
    phrases = POLICY.read_phrases("limit")
    below = policy.differencing_below if policy.differencing_below > 1 else 0  # one person may always join
    effective = {"clamped_at_most": policy.clamped_at_most, "differencing_below": below}
    is_kept = keeps_linkage(policy, policy.gates.linkage or Decimal(0))
    for name in _OF_RECORDS:
        limits = effective.get(name, getattr(policy.gates, name))
        if name not in names or limits is None or (name == "linkage" and is_kept):
            continue
        if not limits and name != "linkage":  # a limit of 0 on linkage means that no row may be linked
            continue
        of_columns = limits if isinstance(limits, dict) else {"": limits}
        for limit in dict.fromkeys(of_columns.values()):
            columns = name_some(column for column, known in of_columns.items() if column and known == limit)
            phrase = phrases[f"{name}_of" if columns else name]
            yield phrase.format(columns=columns, limit=f"{Decimal(limit):f}", share=percent(Decimal(limit)))
