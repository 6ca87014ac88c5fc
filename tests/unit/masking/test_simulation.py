"""Simulated releases: what is compared, and that it is what a release would have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.masking import RECORD
from release_pipeline.masking.simulation import Records, Reference, _compare, list_groupings, simulate
from release_pipeline.policy import Policy, parse_policy

COLUMNS = """
  town:   {role: quasi, do: %(keep)s, values: [north, south], why: needed}
  income: {role: confidential, do: %(noise)s, domain: [0, 1000], grid: 1, outside: clamp, why: known%(codes)s}
  rent:   {role: confidential, do: %(noise)s, domain: [0, 100], grid: 0.5, outside: clamp, why: known}
"""
ROWS = 4_000
SECRET = bytes(range(32))


def policy_of(protect: str, *, synthetic: bool = False, codes: str = "", releases: str = "once", more: str = "") -> Policy:
    """A policy of three columns."""
    does = {"keep": "synthesise", "noise": "synthesise"} if synthetic else {"keep": "keep", "noise": "noise"}
    return parse_policy(
        "policy: people\nsteward: ana\npopulation: folk\nsource: {path: people.csv}\nperson: each-row\n"
        f"releases: {releases}\nprotect: {{{protect}}}\ncolumns:{COLUMNS % {**does, 'codes': codes}}"
        f"gates: {{min_rows: 1000}}\n{more}",
        name="people.yaml",
    )


def make_records(rows: int = ROWS, *, refused: int = 0) -> Records:
    """Rents go with incomes, a fifth of which are 0; towns with neither."""
    random = np.random.default_rng(5)
    income = np.where(random.random(rows) < 0.2, 0, random.integers(1, 1001, rows)).astype(np.float64)
    rent = np.clip(np.round((income / 20 + random.normal(20, 5, rows)) * 2) / 2, 0, 100)
    income[:refused] = 1001.0  # the point of the first reason
    towns = pa.array(["north" if odd else "south" for odd in random.random(rows) < 0.5])
    return Records({"town": towns, "income": pa.array(income), "rent": pa.array(rent)})


def refer(policy: Policy, records: Records) -> Reference:
    """What the records are like."""
    return Reference(records, policy.noise_columns, list_groupings(policy, records))


def test_distances_are_those_of_the_definition() -> None:
    """Known answers of a table of six groups' worth: error, mean, worst group and correlation, by hand."""
    policy, records = policy_of("method: laplace, epsilon: 4"), make_records(60)
    reference = refer(policy, records)
    income, rent = (records.columns[name].to_numpy() for name in ("income", "rent"))
    moved = np.clip(income + np.where(np.arange(60) % 2 == 0, 30, 10), 0, 1000)
    own = np.arange(60)[::-1]  # rows are in another order than records
    table = pa.table(
        {
            RECORD: pa.array(own),
            "town": records.columns["town"].take(pa.array(own)),
            "income": pa.array(moved[own]),
            "rent": pa.array(rent[own]),
        }
    )
    columns, correlation = _compare(policy, reference, table)
    assert columns["rent"] == {"error": 0.0, "mean": 0.0, "group-mean": 0.0}
    assert columns["income"]["error"] == pytest.approx(np.mean((moved - income) ** 2) / income.var())
    assert columns["income"]["mean"] == pytest.approx(np.mean(moved - income))
    towns = np.array(records.columns["town"].to_pylist())
    worst = max(abs((moved - income)[towns == town].mean()) for town in ("north", "south"))
    assert columns["income"]["group-mean"] == pytest.approx(worst)
    expected = abs(np.corrcoef(moved, rent)[0, 1] - np.corrcoef(income, rent)[0, 1])
    assert correlation == pytest.approx(expected)


@pytest.mark.parametrize(
    "protect",
    [
        "method: laplace, epsilon: 2",
        "method: idp-cbls, epsilon: 2, k: 20",
        "method: dp-mdav, epsilon: 2, k: 20, order: corner, scope: centroid",
        "method: dp-cdf, epsilon: 2, partitions: 2",
    ],
)
def test_every_method_is_compared_alike(protect: str) -> None:
    """Errors, means and correlations of every draw, and linkage of the first; the same secret, the same figures."""
    policy, records = policy_of(protect), make_records()
    reference = refer(policy, records)
    found = simulate(policy, [reference], secret=SECRET, draws=3)
    for name in ("income", "rent"):
        assert {figure: drawn.shape for figure, drawn in found.columns[name].items()} == dict.fromkeys(
            ("error", "mean", "group-mean"), (3,)
        )
        assert (found.columns[name]["error"] > 0).all()
    assert found.correlation.shape == (3,)
    assert [rung.masked for rung in found.linkage] == [0, 1, 2]
    assert found.linkage[-1].columns == ("income", "rent")
    again = simulate(policy, [reference], secret=SECRET, draws=3)
    assert again.columns["income"]["error"].tolist() == found.columns["income"]["error"].tolist()
    other = simulate(policy, [reference], secret=bytes(32), draws=1)
    assert protect.startswith("method: mdav") or other.columns["income"]["error"][0] != found.columns["income"]["error"][0]
