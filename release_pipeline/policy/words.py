"""What a policy will do, in sentences, for the plan, the card, the registry and the reviewers alike: never a number alone."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.policy.families import find_family
from release_pipeline.policy.families.base import Plan
from release_pipeline.policy.gate_words import tell_linkage
from release_pipeline.policy.model import Policy
from release_pipeline.sentences import POLICY


def describe_claim(policy: Policy) -> str:
    """The epsilon of a release with what it is of: never a number alone.

    "epsilon 2 in all (0.5 for each of 4 columns), iDP, for the column lists; whole table: not bounded"
    """
    return find_family(policy.protect).describe_claim(policy)


def describe_headline(policy: Policy) -> str:
    """The claim as one number for all that a package has, where it is one: what card, page and note begin with. Else empty.

    "epsilon 3 at delta 0.000001 (rho 0.18506984) for everything in this package"
    """
    return find_family(policy.protect).describe_headline(policy)


def describe_method(policy: Policy) -> str:
    """The method in words, with the order that clusters are cut from where there is one."""
    return find_family(policy.protect).describe_method(policy)


def describe_scopes(plan: Plan) -> Iterator[tuple[str, str]]:
    """What is known of every scope that is wider than the claim, in words: a bound from public facts, or that there is none."""
    policy, family = plan.policy, find_family(plan.policy.protect)
    if policy.protect.scope == "table":
        return
    if not policy.adds_up:
        yield "table", POLICY("bound.none")
        return
    if policy.protect.scope == "centroid":
        yield "column", family.describe_lists(plan)
    yield "table", family.bound_table(policy, plan.clusters, plan.rows)


def not_covered_words(policy: Policy) -> Iterator[str]:
    """What the claim does not protect, a sentence each."""
    yield from find_family(policy.protect).list_uncovered(policy)
    yield from describe_sizes(policy)
    yield from tell_linkage(policy)


def describe_sizes(policy: Policy) -> Iterator[str]:
    """What the public numbers of records reveal about a person or household, a sentence each."""
    if policy.record_count == "not protected":
        yield POLICY("uncovered.record_count", unit=policy.privacy_unit)
    if policy.source.release_column is not None:
        yield POLICY("uncovered.release")


def describe_suppression(policy: Policy) -> str:
    """What may be suppressed, and how much of it."""
    masked = find_family(policy.protect).makes_groups_of_masked
    return policy.suppress.describe(with_masked=masked) if policy.suppress else POLICY("suppress.nothing")


def describe_target(policy: Policy, name: str) -> str:
    """What a model learns to predict of a column."""
    target = policy.audit.predict[name]
    column = policy.noise_columns.get(name)
    if target.above is not None and column is not None and column.clock is not None:
        return POLICY("target.after", column=name, moment=column.say(target.above))
    if target.above is None:
        return POLICY("target.equal", column=name, entry=target.equals)
    return POLICY("target.above", column=name, number=f"{target.above:f}")
