"""The gates that are judged on the records: in the plan, and in the headline of a claim for everything in a package."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from release_pipeline.policy.file.describe import describe_record_gates
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.sections import Gates
from release_pipeline.policy.loading.load import parse_policy
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
SHARES = {"linkage"}


def policy_of(gates: str = "{min_rows: 1000}", **parts: str) -> Policy:
    """A policy with one claim for the whole table."""
    return parse_policy(policy_text(**{**PARTS, **parts, "gates": gates}), name="people")


@pytest.mark.parametrize("name", sorted(Gates.model_fields.keys() - {"min_rows", *Gates.ON_RELEASED}))
def test_every_gate_on_the_records_is_listed(name: str) -> None:
    """A gate that is added is judged on the records until somebody says otherwise."""
    policy = policy_of(columns=COLUMNS.replace("outside: fail", "outside: clamp"), person="{column: person}")
    limit: Any = 7 if name == "differencing_below" else Decimal("0.07") if name in SHARES else {"income": Decimal("0.07")}
    gates = policy.gates.model_copy(update={name: limit})
    added = set(describe_record_gates(policy.model_copy(update={"gates": gates}))) - set(describe_record_gates(policy))
    assert len(added) == (name != "linkage")  # synthetic rows are not linked
    assert all("7" in words for words in added)
