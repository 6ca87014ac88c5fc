"""Sums of columns with codes, counts of those that have a value, and the means of both."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.masking.tables import locate_tables
from release_pipeline.mechanisms.tables import sum_levels
from release_pipeline.policy import Policy
from release_pipeline.policy.loading.load import parse_policy
from tests.integration.sites import policy_text

COLUMNS = """
  person: {role: identifier, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  w:      {role: weight, do: dropWEIGHTS}
  income: {role: confidential, do: noise, domain: [DOMAIN], grid: 1, outside: fail, INCOME}"""
INCOME = "codes: {-8: refused}, missing: keep, why: known"
WEIGHTS = ", domain: [1, 4], grid: 1, outside: fail"
TABLES = (
    "{sums: {by: town, sum: income, epsilon: 4}, valued: {by: town, having: income, epsilon: 4}, "
    "heads: {by: town, epsilon: 2}, whole: {by: town, weight: w, having: income, epsilon: 2}}"
)


def columns_of(tables: str, domain: str = "0, 1000") -> str:
    """The columns, the weight with a domain where tables count by it."""
    text = COLUMNS.replace("DOMAIN", domain).replace("INCOME", INCOME)
    return text.replace("WEIGHTS", WEIGHTS if "weight" in tables else "")


PARTS = {"columns": columns_of(TABLES), "drop": "[name, remark, rent, sex]", "tables": TABLES}
DP = {"protect": "{method: dp-cdf, epsilon: 4}", "gates": "{min_rows: 200}"}


def make(domain: str, tables: str) -> Policy:
    """A small policy."""
    parts = {**PARTS, **DP, "columns": columns_of(tables, domain), "tables": tables}
    return parse_policy(policy_text(**parts), name="people")


@pytest.mark.parametrize("domain", ["0, 3", "-4, 3"])
@pytest.mark.parametrize("table", ["having: income", "weight: w, sum: income"])
def test_no_record_changes_more_than_the_noise_is_for(domain: str, table: str) -> None:
    """All records that one may become, values, codes and blanks: in L1 and L2, and some change comes to it."""
    policy = make(domain, f"{{t: {{by: town, {table}, epsilon: 1}}}}")
    [tabulation] = policy.tabulations.values()
    column = policy.noise_columns["income"]
    incomes = [*range(int(column.domain[0]), int(column.domain[1]) + 1), *column.reason_points]
    kinds = list(itertools.product(["north", "south"], [1, 4], incomes))

    def cells(kind: tuple[str, int, float]) -> np.ndarray:
        town, weight, income = kind
        records = pa.table({"town": [town], "w": [float(weight)], "income": [float(income)]})
        [located] = locate_tables(policy, lambda _, names: records.select(list(names or [])), progress=lambda _: None)
        return sum_levels(located.cell, located.amounts, tabulation.shape)[0]

    found = {kind: cells(kind) for kind in kinds}
    changes = [found[one] - found[other] for one, other in itertools.product(kinds, kinds)]
    [sensitivity] = tabulation.sensitivities
    assert max(int(np.abs(change).sum()) for change in changes) == sensitivity.l1
    assert max(int((change**2).sum()) for change in changes) == sensitivity.l2_squared
