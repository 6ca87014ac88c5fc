"""The gates that are judged on the records: in the plan, and in the headline of a claim for everything in a package."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from release_pipeline.policy.gate_words import describe_record_gates
from release_pipeline.policy.load import parse_policy
from release_pipeline.policy.model import Policy
from release_pipeline.policy.plan import describe_plan, make_plan
from release_pipeline.policy.sections import Gates
from release_pipeline.policy.words import describe_claim, describe_headline, not_covered_words
from tests.integration.sites import policy_text

COLUMNS = """
  person: {role: identifier, do: drop}
  income: {role: confidential, do: synthesise, domain: [0, 200], grid: 1, outside: fail, why: known}
  sex:    {role: quasi, do: synthesise, values: [0, 1]}"""
PARTS = {
    "columns": COLUMNS,
    "drop": "[name, remark, town, rent]",
    "person": "each-row",
    "suppress": "",
    "protect": "{method: dp-table, epsilon: 10}",
}
NOT_OF_RECORDS = {"min_rows", "anonymity_k", "l_diversity"}
SHARES = {"singling_out", "linkability", "linkage"}
HEADLINE = "epsilon 10 for everything in this package"


def policy_of(gates: str = "{min_rows: 1000}", **parts: str) -> Policy:
    """A policy with one claim for the whole table."""
    return parse_policy(policy_text(**{**PARTS, **parts, "gates": gates}), name="people")


def test_a_headline_names_the_gates_that_were_judged_on_the_records() -> None:
    """A release that appears shows that they passed: two neighbours on either side of a limit differ in that."""
    policy = policy_of("{min_rows: 1000, expected_error: {income: 0.5}, ks: {income: 0.1}}")
    limits = "expected error of income at most 0.5; expected Kolmogorov-Smirnov distance of income at most 0.1"
    given = f"given that the records passed its gates ({limits})"
    assert describe_headline(policy) == f"{HEADLINE}, {given}"
    assert describe_claim(policy) == f"{HEADLINE} (DP): all that a reader sees, categories included, {given}"
    assert describe_headline(policy_of()) == HEADLINE, "the number of rows is public"


def test_limits_that_nobody_wrote_are_gates_too() -> None:
    """Records may be clamped up to a share, and people may join in tens."""
    clamping = COLUMNS.replace("outside: fail", "outside: clamp")
    person = "{column: person, records_per_release: 1}"
    headline = describe_headline(policy_of(columns=clamping, person=person))
    between = "between two releases nobody joins, or at least 10 people do, and likewise leaving"
    assert headline == f"{HEADLINE}, given that the records passed its gates (at most 1% of records clamped in income; {between})"
    headline = describe_headline(policy_of(columns=clamping, person="{column: person, slots: 3}"))
    assert f"(at most 1% of rows clamped in income; {between})" in headline, "empty slots count as rows"


@pytest.mark.parametrize("name", sorted(Gates.model_fields.keys() - NOT_OF_RECORDS))
def test_every_gate_on_the_records_is_listed(name: str) -> None:
    """A gate that is added is judged on the records until somebody says otherwise."""
    policy = policy_of(columns=COLUMNS.replace("outside: fail", "outside: clamp"), person="{column: person}")
    limit: Any = 7 if name == "differencing_below" else Decimal("0.07") if name in SHARES else {"income": Decimal("0.07")}
    gates = policy.gates.model_copy(update={name: limit})
    added = set(describe_record_gates(policy.model_copy(update={"gates": gates}))) - set(describe_record_gates(policy))
    assert len(added) == (name != "linkage")  # synthetic rows are not linked
    assert all("7" in words for words in added)


def test_a_limit_on_linkage_is_listed_where_rows_have_originals() -> None:
    """It is judged on the records there; of synthetic rows the plan says that nothing is tried."""
    synthetic = policy_of("{linkage: 10%, min_rows: 1000}")
    assert describe_headline(synthetic) == HEADLINE
    assert "linkage is not tried: rows are synthetic" in " ".join(" ".join(describe_plan(make_plan(synthetic))).split())
    columns = COLUMNS.replace("synthesise, domain", "noise, domain").replace("do: synthesise, values: [0, 1]", "do: drop")
    masked = policy_of("{linkage: 10%, min_rows: 1000}", columns=columns, protect="{method: laplace, epsilon: 1}")
    assert any("finds at most 10% of the rows" in words for words in describe_record_gates(masked))
    none = masked.model_copy(update={"gates": masked.gates.model_copy(update={"linkage": Decimal(0)})})
    assert any("finds at most 0% of the rows" in words for words in describe_record_gates(none))


@pytest.mark.parametrize("method", ["{method: dp-table, epsilon: 10}", "{method: laplace, epsilon: 1}"])
def test_which_release_a_record_is_in_is_said_not_to_be_protected(method: str) -> None:
    """Where a column decides it, since each number of records is public; where nothing is to be divided nothing is said."""
    columns = COLUMNS if "table" in method else COLUMNS.replace("synthesise, domain", "noise, domain")
    columns = columns if "table" in method else columns.replace("do: synthesise, values: [0, 1]", "do: drop")
    several = policy_of(columns=columns, protect=method)
    assert several.source.release_column == "year"
    [words] = [words for words in not_covered_words(several) if words.startswith("Which release a record is in")]
    assert "changes the numbers of both" in words
    assert "not covered: which release a record is in" in " ".join(" ".join(describe_plan(make_plan(several))).split())
    once = policy_of(
        columns=columns, protect=method, source="{path: people.csv}", releases="once", drop="[name, remark, town, rent, year]"
    )
    assert not [words for words in not_covered_words(once) if words.startswith("Which release a record is in")]
