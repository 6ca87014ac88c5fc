"""Public facts: one source of epsilon, the charge, and the few forms that it is written in."""

from __future__ import annotations

import pytest

from release_pipeline.ledger.facts import PublicFacts, claimed_nano, describe_bound, note_facts, read_facts
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.plans.loss import Loss
from release_pipeline.store.ledger import Charge
from release_pipeline.store.registry import ReleaseId

CHARGED = Charge(
    ReleaseId("people", "1"), "folk", "hash", "source", 100, Loss(None, None, None, 1_000_000_001, 2_500_000_000, None)
)
FACTS = PublicFacts(
    release="people/1/r1",
    claim="a claim",
    definition="idp",
    scope="column",
    method="idp-cbls",
    epsilon=300_000_000,
    k=5,
    anonymity_k=None,
    column_bound="at most epsilon 0.3 in all",
    table_bound="not bounded",
    series_epsilon=1,
    population_spent="0.3 of 1 (epsilon, iDP, column)",
    policy_hash="hash",
    rows_in=100,
    rows_out=99,
    cells_blanked=0,
)


def policy_of(protect: str, column: str = "") -> Policy:
    """A policy of one masked column."""
    head = "policy: people\nsteward: ana\npopulation: folk\nsource: {path: people.csv}\nperson: each-row\nreleases: once\n"
    income = "  income: {role: confidential, do: noise, domain: [0, 100], grid: 1, outside: fail, why: known}\n"
    return parse_policy(f"{head}protect: {{{protect}}}\ncolumns:\n{income}{column}", name="people.yaml")


CBLS = policy_of("method: idp-cbls, epsilon: 2, k: 5")
CENTROID = policy_of("method: idp-cbls, epsilon: 2, k: 5, scope: centroid")
CLASSES = policy_of(
    "method: k-epsilon, grouping: ola, k: 2, epsilon: 3", "  sex: {role: quasi, do: generalise, hierarchy: {groups: [f, m]}}\n"
)
ALIKE = policy_of("method: mdav, k: 2")


@pytest.mark.parametrize(
    ("policy", "nano"),
    [(CBLS, 2_500_000_000), (CENTROID, 1_000_000_001), (CLASSES, 3_000_000_000), (ALIKE, None)],
)
def test_epsilon_is_what_was_charged(policy: Policy, nano: int | None) -> None:
    """In the claim's own scope; by the policy where nothing adds up."""
    assert claimed_nano(policy, CHARGED) == nano
    assert claimed_nano(policy, None) == policy.epsilon


@pytest.mark.parametrize(
    ("policy", "column", "table"),
    [
        (CBLS, "at most epsilon 2.5 in all", "not bounded"),
        (CLASSES, "not bounded", "not bounded"),
    ],
)
def test_bounds_are_what_was_charged(policy: Policy, column: str, table: str) -> None:
    """Where nothing adds up there is no bound."""
    assert (describe_bound(policy, CHARGED, "column"), describe_bound(policy, CHARGED, "table")) == (column, table)


def test_evidence_and_registry_have_the_same_facts() -> None:
    """Numbers there, texts here; both are read as the same nano-epsilon."""
    content = FACTS.to_json()
    noted = note_facts(content, "digest")
    assert (content["epsilon"], content["series_epsilon"], noted["epsilon"], noted["series_epsilon"]) == (
        0.3,
        1e-09,
        "0.3",
        "1e-09",
    )
    assert noted["candidate_hash"] == "digest"
    assert read_facts(content, where="here") == read_facts(noted, where="there") == FACTS
