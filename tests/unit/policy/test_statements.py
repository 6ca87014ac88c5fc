"""The clause that iDP rests on, wherever a claim is told, and the formal statement of each mechanism."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from release_pipeline.policy import Policy
from release_pipeline.policy.options import MdavOptions
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.statements import state_claim
from release_pipeline.policy.words import describe_claim, not_covered_words
from release_pipeline.privacy.catalogue import METHODS, find_claim
from release_pipeline.privacy.catalogue.definitions import SCALES_FIXED
from release_pipeline.report.internal import render_internal
from tests.unit.policy.test_plan import INCOME, RENT, policy_of
from tests.unit.report.internal_views import sample_view

ROOT = Path(__file__).resolve().parents[3]
TRIMMED = ", order: hilbert, statistic: trimmed"
INDIVIDUAL = {
    "idp-ls": policy_of("idp-ls"),
    "idp-cbls": policy_of("idp-cbls"),
    "idp-cbls, centroid": policy_of("idp-cbls", options=", scope: centroid"),
    "dp-mdav, trimmed": policy_of("dp-mdav", 5, INCOME, RENT, options=f"{TRIMMED}, scope: table"),
}
OTHERS = {
    "laplace": policy_of("laplace", None),
    "dp-um": policy_of("dp-um"),
    "dp-mdav, plain": policy_of("dp-mdav", 5, INCOME, RENT, options=", order: hilbert, statistic: plain, scope: table"),
}


def classes_of(options: str = "") -> Policy:
    """A policy of classes."""
    sex = "sex: {role: quasi, do: generalise, hierarchy: {groups: [f, m]}, why: known}"
    return policy_of("k-epsilon", 5, INCOME.replace("confidential", "quasi"), sex, options=f", grouping: ola{options}")


def content(policy: Policy) -> str:
    """What `check` prints, on one line."""
    return " ".join(" ".join(describe_plan(make_plan(policy, rows=1000))).split())


@pytest.mark.parametrize("policy", INDIVIDUAL.values(), ids=INDIVIDUAL)
def test_check_and_card_say_that_scales_are_fixed(policy: Policy) -> None:
    """In the same sentence, with the figure of what happens otherwise; the formal statement has the clause, too."""
    assert SCALES_FIXED in content(policy)
    assert list(not_covered_words(policy)).count(SCALES_FIXED) == 1
    assert "where M has the noise scales of D for both" in state_claim(policy)


@pytest.mark.parametrize("policy", OTHERS.values(), ids=OTHERS)
def test_nobody_else_says_so(policy: Policy) -> None:
    """Scales of eps-DP are public."""
    assert SCALES_FIXED not in content(policy)
    assert SCALES_FIXED not in not_covered_words(policy)
    assert state_claim(policy).startswith("For any two tables D and D'")


def test_the_page_of_the_reviewers_says_it() -> None:
    view = sample_view(statement="The statement.", scales=SCALES_FIXED)
    page = html.unescape(" ".join(render_internal(view).split()))
    assert SCALES_FIXED in page
    assert "The statement." in page
    assert "<dt>Scales</dt>" not in render_internal(sample_view())


@pytest.mark.parametrize("file", ["README.md", "docs/guarantees.md", "docs/mechanisms.md"])
def test_the_documents_say_it_in_the_same_words(file: str) -> None:
    assert SCALES_FIXED in " ".join((ROOT / file).read_text(encoding="utf-8").split())


def test_a_statement_knows_persons_and_parts() -> None:
    """Several records of a person, under eps-DP; random parts."""
    assert state_claim(policy_of("dp-um")) == find_claim("dp-um", "column").statement
    assert "up to 3 records of one person" in state_claim(policy_of("dp-um", records=3))
    assert "of all parts together" in state_claim(policy_of("dp-um", options=", partitions: 4"))
    alike = {"method": "mdav", "k": 5, "partitions": 4}
    partitioned = policy_of("dp-um", 5, INCOME, RENT).model_copy(update={"protect": MdavOptions.model_validate(alike)})
    assert state_claim(partitioned) == find_claim("mdav", "cluster").statement
    assert "A class is all records of the release with the same labels" in state_claim(classes_of(", partitions: 4"))
    assert state_claim(classes_of()) == find_claim("k-epsilon", "class").statement


def test_every_statement_is_one_text_of_ascii() -> None:
    """It stands in privacy-card.json."""
    for mechanism in (claim for spec in METHODS.values() for claim in spec.claims):
        assert mechanism.statement.isascii()
        assert "{" not in mechanism.statement
        assert mechanism.statement.endswith(".")


def test_swapped_values_have_no_bound_for_the_table() -> None:
    """Blocks follow from the data, so that a claim for the whole table would not hold; the lists keep theirs."""
    swapped = policy_of("laplace", None, options=", swap: {k: 5, within: kept}")
    assert policy_of("laplace", None).covers_table
    assert not swapped.covers_table
    assert "whole table: not bounded" in describe_claim(swapped)
    assert "Which values of the lists share a row is not covered" in state_claim(swapped)
    assert any("reads the values of the last one off its rows" in words for words in not_covered_words(swapped))
