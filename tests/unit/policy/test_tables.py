"""`tables` in a policy: what they may be, what they cost at every scope, and what is told of them."""

from __future__ import annotations

import pytest

from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.mechanisms.catalogue.entries import RHO_TABLES
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import parse_policy
from release_pipeline.policy.plans.loss import release_loss, rows_loss
from release_pipeline.policy.plans.plan import check_rows, state_claim

HEAD = """policy: people
steward: ana
population: folk
source: {path: people.csv}
person: PERSON
releases: once
protect: {PROTECT}
columns:
  who:    {role: identifier, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  note:   {role: confidential, do: drop}
  income: {role: confidential, do: noise, domain: [-500, 1000], grid: 0.5, outside: fail, why: known}
  odd:    {role: confidential, do: noise, domain: [0.25, 1000.25], grid: 0.5, outside: fail, why: known}
tables:
"""
IDP, CDF = "method: idp-cbls, epsilon: 2, k: 5", "method: dp-cdf, epsilon: 2"
RHO = "method: dp-cdf, definition: zcdp, epsilon: 2, delta: 0.000001"
GROUPS = "groups: {coast: [north, south], inland: [east]}"
TWO = "  people: {by: [town, sex], epsilon: 0.25}\n  wages: {by: town, sum: income, epsilon: 0.5}\n"


def make(tables: str = TWO, *, protect: str = IDP, person: str = "each-row") -> Policy:
    """The policy with these tables."""
    return parse_policy(HEAD.replace("PERSON", person).replace("PROTECT", protect) + tables, name="p")


WRONG = {
    "a dropped column": ("  t: {by: [town, note], epsilon: 1}", "'note' declares no values"),
    "an unknown column": ("  t: {by: [town, tawn], epsilon: 1}", "'tawn' is not declared under columns"),
    "a masked column": ("  t: {by: [income], epsilon: 1}", "'income' is masked: its values are no labels"),
    "no budget": ("  t: {by: [town]}", "a table has either an epsilon, or under zcdp a rho"),
    "rho without its definition": ("  t: {by: [town], rho: 1}", "the rows claim iDP"),
    "nothing to share": ("  t: {by: [town], epsilon: 0.000000001}", "it is left with nothing to spend"),
    "a sum of a kept column": ("  t: {by: [town], sum: sex, epsilon: 1}", "'sex' has no domain and grid that bound a sum"),
    "a sum off every grid": ("  t: {by: [town], sum: odd, epsilon: 1}", "does not begin at a multiple of its grid"),
    "a value in no group": (
        "  t: {by: [{column: town, groups: {a: [north, south]}}], epsilon: 1}",
        "east of 'town' is in no group",
    ),
    "a value of nobody": (
        "  t: {by: [{column: town, groups: {a: [north, south, east], b: [west]}}], epsilon: 1}",
        "west is no declared value of 'town'",
    ),
    "an unknown level": (f"  t: {{by: [{{column: town, {GROUPS}, levels: [5]}}], epsilon: 1}}", "levels are different numbers"),
    "two deep columns": (
        f"  t: {{by: [{{column: town, {GROUPS}}}, {{column: sex, groups: {{a: {{b: [0], c: [1]}}}}}}], epsilon: 1}}",
        "has several levels of more than one column",
    ),
    "one cell": (
        "  t: {by: [{column: town, groups: {a: [north, south, east]}, levels: [1]}], epsilon: 1}",
        "it has one cell, whose count is the number of records",
    ),
    "a formula": (
        "  t: {by: [{column: town, groups: {'=1+1': [north, south], b: [east]}}], epsilon: 1}",
        "a spreadsheet takes the group '=1+1' for a formula",
    ),
}


@pytest.mark.parametrize(("tables", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_a_line_and_a_way_out(tables: str, words: str) -> None:
    """One error each, at the table."""
    with pytest.raises(PolicyInvalid) as caught:
        make(tables)
    [problem] = caught.value.problems
    assert problem.startswith(("p:16:", "p:17:"))
    assert "tables." in problem
    assert words in problem


def test_methods_that_nothing_adds_up_with_refuse_tables() -> None:
    """Their caps count releases."""
    with pytest.raises(PolicyInvalid) as caught:
        make(protect="method: mdav, k: 5")
    assert any("which nothing adds up with" in problem for problem in caught.value.problems)


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    """By their number, which may be beyond any memory."""
    values = ", ".join(f"v{number}" for number in range(400))
    many = "".join(f"  c{number}: {{role: quasi, do: keep, values: [{values}], why: made up}}\n" for number in range(6))
    by = ", ".join(f"c{number}" for number in range(6))
    text = HEAD.replace("PERSON", "each-row").replace("PROTECT", IDP).replace("tables:\n", f"{many}tables:\n")
    with pytest.raises(PolicyInvalid, match="the policy has 1 error") as caught:
        parse_policy(text + f"  t: {{by: [{by}], epsilon: 1}}\n", name="p")
    assert "it would have 4,096,000,000,000,000 cells, and 100,000 are the most" in caught.value.problems[0]


def test_tables_add_to_every_scope_and_definition_that_can_hold_them() -> None:
    """eps in dp and idp, eps^2/2 in rho; the rows as without tables."""
    pure, rows = make(protect=CDF), rows_loss(make(protect=CDF), records=100)
    loss = release_loss(pure, records=100)
    for name in ("dp_centroid", "dp_column", "idp_centroid", "idp_column"):
        assert getattr(loss, name) == getattr(rows, name) + 750_000_000
    assert loss.zcdp_column == (rows.zcdp_column or 0) + 31_250_000 + 125_000_000
    assert loss.dp_table is None
    assert pure.epsilon == 2_750_000_000
    individual = release_loss(make(), records=100)
    assert (individual.dp_column, individual.idp_column, individual.zcdp_column) == (None, 2_750_000_000, None)


def test_under_rho_tables_spend_rho_or_half_the_square_of_epsilon() -> None:
    """And noise by rho is bounded by no epsilon, whatever the rows are."""
    policy = make("  people: {by: [town], rho: 0.01}\n  wages: {by: town, sum: income, epsilon: 0.1}\n", protect=RHO)
    loss, rows = release_loss(policy, records=100), rows_loss(policy, records=100)
    assert loss.zcdp_column == (rows.zcdp_column or 0) + 10_000_000 + 5_000_000
    assert (loss.dp_column, loss.idp_column) == (None, None)
    assert policy.tabulations["people"].noise[0].name == "Gaussian 100"
    assert policy.tabulations["wages"].noise[0].name == "Laplace 40000"  # 2 * 2000 steps / 0.1
    assert RHO_TABLES.statement in state_claim(policy)


def test_everybody_with_several_records_is_charged_for_all_of_them() -> None:
    """Noise is for one record, as of rows; the charge for as many as a person may have: times R, and times R squared in rho."""
    person = "{column: who, records_per_release: 3}"
    policy = make(protect=CDF, person=person)
    assert policy.tabulations["people"].noise[0].name == "Laplace 8"
    assert policy.tables_cost == 3 * 750_000_000
    rho = make("  people: {by: [town], rho: 0.01}\n", protect=RHO, person=person)
    assert rho.tables_cost == 9 * 10_000_000


def test_sums_that_may_not_fit_are_refused_before_the_charge() -> None:
    """By the number of records, which is public."""
    wide = make()
    check_rows(wide, 10**9)
    with pytest.raises(InvalidArgument, match="might not fit into 64 bits"):
        check_rows(wide, 2**52)
