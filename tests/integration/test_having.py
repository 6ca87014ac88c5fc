"""Sums of columns with codes, counts of those that have a value, and the means of both."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.errors import PolicyInvalid
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import Policy
from release_pipeline.policy.load import parse_policy
from release_pipeline.privacy.tables import sum_levels
from release_pipeline.stages.tables import locate_tables
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import make_rows, policy_text

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
SURE = 1 - 1e-9


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


@pytest.mark.slow
def test_means_of_those_who_have_a_value(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """From policy to package; the kit divides sums by the counts of those that have a value, and by no others."""
    rows = [{**row, "w": str(1 + number % 4)} for number, row in enumerate(make_rows(400, releases=("1",)))]
    for number, row in enumerate(rows):
        row["income"] = "-8" if number % 5 == 0 else "" if number % 11 == 0 else row["income"]
    header = ("person", "year", "town", "sex", "income", "rent", "name", "remark", "w")
    parts = {**PARTS, **DP, "releases": '["1"]'}
    tiny = make_trusted_site(tmp_path / "site", keys, cap="epsilon: 40, definition: dp, scope: column", **parts)
    tiny.write_rows(rows, header=header)
    package = publish_release(tiny, keys)
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    card = json.loads((package / "privacy-card.json").read_text())
    known = {table["name"]: table for table in card["tables"]}
    assert known["sums"]["lacking"] == "nothing"
    assert known["valued"]["having"] == "income"
    assert known["heads"]["having"] is None
    release = read_release(package)
    own = {town: [row for row in rows if row["town"] == town] for town in ("north", "south", "east")}
    for town, people in own.items():
        values = [int(row["income"]) for row in people if row["income"] not in ("", "-8")]
        weights = sum(int(row["w"]) for row in people if row["income"] not in ("", "-8"))
        for interval, truth in (
            (release.table("sums").sum({"town": town}, level=SURE), sum(values)),
            (release.table("valued").count({"town": town}, level=SURE), len(values)),
            (release.table("sums").mean({"town": town}, level=SURE), np.mean(values)),
            (release.table("whole").count({"town": town}, level=SURE), weights),
        ):
            assert interval.low <= truth <= interval.high
    everybody = [int(row["income"]) for row in rows if row["income"] not in ("", "-8")]
    mean = release.table("sums").mean(level=SURE)
    assert mean.low <= np.mean(everybody) <= mean.high
    share = release.table("valued").share({"town": "north"}, level=SURE)
    truth = len([row for row in own["north"] if row["income"] not in ("", "-8")]) / len(everybody)
    assert share.low <= truth <= share.high


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("by: town, having: town, epsilon: 1", "'town' is not masked"),
        ("by: town, having: income, sum: income, epsilon: 1", "'having' is for tables of counts"),
    ],
)
def test_what_cannot_be_counted_so_is_told(table: str, words: str) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        make("0, 9", f"{{t: {{{table}}}}}")
    assert words in str(refused.value.problems)
