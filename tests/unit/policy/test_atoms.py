"""Atoms and their gates in a policy: what is refused, what `check` says of them, and that older policies keep their hash."""

from __future__ import annotations

import pytest

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.documents import to_json
from release_pipeline.policy.plans.plan import describe_plan, make_plan
from release_pipeline.policy.plans.views import view_plan
from tests.integration.sites import refusal

INCOME = "{role: confidential, do: noise, domain: [-100, 99900], grid: 1, outside: clamp, why: known%s}"
IDP_CBLS = "{method: idp-cbls, epsilon: 0.5, k: 50}"


def parse(atoms: str = "", protect: str = IDP_CBLS, gates: str = "{min_rows: 10000}", more: str = "") -> Policy:
    """One noise column, with these atoms."""
    lines = [
        "policy: people\nsteward: ana\npopulation: people\nsource: {path: people.csv}\nreleases: once\nperson: each-row",
        f"protect: {protect}\ngates: {gates}\ncolumns:",
        f"  income: {INCOME % (f', atoms: {atoms}' if atoms else '')}{more}",
    ]
    return parse_policy("\n".join(lines) + "\n", name="p.yaml")


def check(policy: Policy, rows: int | None = None) -> str:
    return " ".join(" ".join(describe_plan(make_plan(policy, rows=rows))).split())


# hashes


# refusals


@pytest.mark.parametrize(
    ("atoms", "words"),
    [
        ("[0.5]", "columns.income.atoms: an atom lies off the grid, so that no value could be there."),
        ("[-101]", "columns.income.atoms: an atom lies outside the domain."),
        ("[1, 1.0]", "columns.income.atoms: an atom is named twice."),
        (f"{list(range(101))}", "columns.income.atoms: there are 101 atoms, and a column has 100 at the most."),
    ],
)
def test_atoms_that_cannot_be_are_refused(atoms: str, words: str) -> None:
    assert words in refusal(lambda: parse(atoms))


@pytest.mark.parametrize(
    ("atoms", "protect", "gates", "words"),
    [
        ("", IDP_CBLS, "{atom_share: {income: 0.1}}", "gates.atom_share.income: 'income' declares no atoms."),
        ("[0]", IDP_CBLS, "{ks: {rent: 0.1}}", "gates.ks.rent: 'rent' is not a column with do: noise."),
        ("", "{method: k-epsilon, grouping: ola, k: 5, epsilon: 1}", "{ks: {income: 0.1}}", "gates.ks: k-epsilon expects errors"),
    ],
)
def test_gates_that_mean_nothing_are_refused(atoms: str, protect: str, gates: str, words: str) -> None:
    assert words in refusal(lambda: parse(atoms, protect, gates))


# what check says


@pytest.mark.parametrize(
    ("protect", "rows", "words"),
    [
        (IDP_CBLS, 7_350, ""),
        (IDP_CBLS, 7_349, "up to 2.0% of the records can stand at an atom in clusters that other values share"),
        ("{method: laplace, epsilon: 0.5}", 10_000, "every record has noise of its own, which leaves about 0.0% of those"),
        ("{method: dp-um, epsilon: 0.5, k: 50, consistency: none}", 10_000, "every cluster has noise of its own"),
        ("{method: dp-um, epsilon: 1000, k: 5000}", 10_000_000, ""),
    ],
)
def test_check_warns_where_noise_leaves_no_shares(protect: str, rows: int | None, words: str) -> None:
    """From public facts alone, with the way out; not where shares at atoms keep within two points of 100."""
    gates = "{min_rows: 100000}" if "5000" in protect else "{}"
    policy = parse("[0]", protect, gates)
    content = check(policy, rows)
    assert ("warning income: " in content) == bool(words)
    assert words in content
    assert ("warnings" in to_json(view_plan(make_plan(policy, rows=rows)))) == bool(words)
    assert "warning income" not in check(parse("", protect, gates), rows)
