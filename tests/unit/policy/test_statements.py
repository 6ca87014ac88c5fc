"""The clause that iDP rests on, wherever a claim is told, and the formal statement of each mechanism."""

from __future__ import annotations

import pytest

from release_pipeline.mechanisms.catalogue.spec import SCALES_FIXED
from release_pipeline.policy import Policy
from release_pipeline.policy.plans.plan import describe_claim, describe_plan, make_plan, not_covered_words, state_claim
from tests.unit.policy.test_plan import INCOME, RENT, policy_of

TRIMMED = ", order: hilbert, statistic: trimmed"
INDIVIDUAL = {
    "idp-ls": policy_of("idp-ls"),
    "idp-cbls": policy_of("idp-cbls"),
    "idp-cbls, centroid": policy_of("idp-cbls", options=", scope: centroid"),
    "dp-mdav, trimmed": policy_of("dp-mdav", 5, INCOME, RENT, options=f"{TRIMMED}, scope: table"),
}


def content(policy: Policy) -> str:
    """What `check` prints, on one line."""
    return " ".join(" ".join(describe_plan(make_plan(policy, rows=1000))).split())


@pytest.mark.parametrize("policy", INDIVIDUAL.values(), ids=INDIVIDUAL)
def test_check_and_card_say_that_scales_are_fixed(policy: Policy) -> None:
    """In the same sentence, with the figure of what happens otherwise; the formal statement has the clause, too."""
    assert SCALES_FIXED in content(policy)
    assert list(not_covered_words(policy)).count(SCALES_FIXED) == 1
    assert "where M has the noise scales of D for both" in state_claim(policy)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            policy_of("laplace", None),
            "the guarantee is for one person. For four of them together it holds, at the same scope, only "
            "with 4 times as much: epsilon 8.",
        ),
        (policy_of("laplace", None, records=3), "only with 4 times as much: epsilon 24."),
        (policy_of("dp-um", 5, options=", definition: zcdp, delta: 0.000001"), "only with 16 times the rho: epsilon 9.5 at"),
        (policy_of("idp-cbls"), "Groups of people, such as a family: the guarantee is about one record at a time."),
    ],
    ids=["epsilon", "records", "rho", "idp"],
)
def test_what_a_family_loses_is_not_covered(policy: Policy, words: str) -> None:
    """With the figure of four people, whatever they share; individual differential privacy bounds nothing of groups."""
    assert [words in told for told in not_covered_words(policy) if told.startswith("Groups")] == [True]


def test_swapped_values_have_no_bound_for_the_table() -> None:
    """Blocks follow from the data, so that a claim for the whole table would not hold; the lists keep theirs."""
    swapped = policy_of("laplace", None, options=", swap: {k: 5, within: kept}")
    assert policy_of("laplace", None).covers_table
    assert not swapped.covers_table
    assert "whole table: not bounded" in describe_claim(swapped)
    assert "Which values of the lists share a row is not covered" in state_claim(swapped)
    assert any("can read the last one's values off its rows" in words for words in not_covered_words(swapped))
