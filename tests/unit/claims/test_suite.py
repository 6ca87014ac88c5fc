"""The policies that `python -m experiments.claims` goes through: every claim that is proved anywhere is attacked there."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from experiments.claims import list_suite
from release_pipeline.claims.promises import list_promises
from release_pipeline.mechanisms.catalogue import METHODS

SUITE = list_suite()
MEASURED = Path(__file__).resolve().parents[3] / "docs" / "measured.md"
CLAIMS = {claim.section for spec in METHODS.values() for claim in spec.claims}


def test_every_claim_of_the_catalogue_has_a_policy() -> None:
    """A claim without a policy in the suite, or a policy that promises nothing, would be attacked by nobody."""
    assert {policy.claim.section for policy in SUITE.values()} >= CLAIMS
    assert [name for name, policy in SUITE.items() if not list_promises(policy)] == []


def test_the_page_of_measurements_has_a_row_for_every_promise() -> None:
    """Once, under the name that the audit has for the policy: a policy that nobody ran the audit for would be in no row."""
    lines = MEASURED.read_text(encoding="utf-8").partition("| policy | what is promised | claimed |")[2].splitlines()
    rows = [tuple(line.strip("| ").split(" | ")[:2]) for line in takewhile(lambda line: line.startswith("|"), lines[2:])]
    promised = [(name, promise.description) for name, policy in SUITE.items() for promise in list_promises(policy)]
    assert sorted(rows) == sorted(promised)
