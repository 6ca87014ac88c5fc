"""Tables by columns that are in no row."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.errors import InvalidArgument
from release_pipeline.masking.tables import locate_tables
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.tables import CellNoise, sum_levels
from release_pipeline.policy import load_policy
from release_pipeline.publish.public import CARD_SCHEMA
from release_pipeline.publish.verification import verify
from release_pipeline.trust.keys import PrivateKey
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import Row, TinySite, make_site
from tests.integration.test_households import MOST, SURE, make_households, of_first

TOWNS = ("north", "south", "zyxEASTzyx")

PARTS = {
    "protect": "{method: dp-cdf, epsilon: 1, k: 5}",
    "drop": "[name]",
    "suppress": "",
    "publish": "{formats: [parquet, csv, dta, sav]}",
    "gates": "{min_rows: 20, clamped_at_most: 10%}",
    "columns": """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: drop, values: [north, south, zyxEASTzyx]}
  sex:    {role: quasi, do: drop, values: [0, 1], missing: {category: 1}}
  income: {role: confidential, do: noise, domain: [0, 200], grid: 1, outside: clamp, why: known,
           missing: keep, codes: {-8: refused}}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}""",
    "tables": "{people: {by: [sex, {column: town, groups: {coast: [north, south], inland: [zyxEASTzyx]}}], epsilon: 2}, "
    "rents: {by: town, sum: rent, epsilon: 2}, earners: {by: town, having: income, epsilon: 2}, "
    "incomes: {by: town, sum: income, epsilon: 2}}",
}

OF_HOUSEHOLDS = f"{{column: person, unit: household, records_per_release: {MOST}}}"
CAP = "epsilon: 60, definition: dp, scope: column"


def make_records() -> list[Row]:
    """Of households in three towns; some of them do not say who they are."""
    rows = make_households()
    for place, row in enumerate(rows):
        row |= {"town": TOWNS[int(row["person"][1:]) % 3], "sex": ("0", "1", "")[place % 3]}
    return rows


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> tuple[TinySite, Path]:
    """Of households."""
    home = tmp_path_factory.mktemp("counted") / "site"
    tiny = make_trusted_site(home, keys, rows=make_records(), cap=CAP, person=OF_HOUSEHOLDS, **PARTS)
    return tiny, publish_release(tiny, keys)


@pytest.mark.slow
def test_rows_have_no_such_column_and_tables_have_its_labels(published: tuple[TinySite, Path]) -> None:
    """Neither does card or note say a town but as a label of a table; cells add up over levels."""
    tiny, package = published
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    data = pd.read_csv(package / "data.csv")
    assert list(data.columns) == ["income", "income_missing", "rent"]
    for name in ("data.csv", "data.parquet", "data.counts.csv", "privacy-card.json", "RELEASE_NOTE.md"):
        assert b"zyxEASTzyx" not in (package / name).read_bytes(), name
    people = pd.read_csv(package / "data.table-people.csv")
    assert set(people.loc[people["level"] == 0, "town"]) == set(TOWNS)
    assert people.groupby("level")["value"].sum().nunique() == 1
    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    assert "town" not in {column["name"] for column in card["columns"]}


@pytest.mark.slow
def test_means_are_of_the_records_that_have_a_value(published: tuple[TinySite, Path]) -> None:
    """Within the noise; the number of records is public."""
    package = published[1]
    rows = of_first(make_records())
    release = read_release(package)
    towns = Counter(row["town"] for row in rows)
    assert release.table("people").count().low == len(rows)
    for town in TOWNS:
        one = release.table("people").count({"town": town}, level=SURE)
        assert one.low <= towns[town] <= one.high
        assert one.high - one.low < 200
        rents = [float(row["rent"] or 0) for row in rows if row["town"] == town]
        total = release.table("rents").sum({"town": town}, level=SURE)
        assert total.low <= sum(rents) <= total.high
        mean = release.table("rents").mean({"town": town}, level=SURE)
        assert mean.low <= sum(rents) / len(rents) <= mean.high
        incomes = [float(row["income"]) for row in rows if row["town"] == town and row["income"] not in ("-8", "")]
        mean = release.table("incomes").mean({"town": town}, level=SURE)
        assert mean.low <= sum(incomes) / len(incomes) <= mean.high
    tables = {table["name"]: table for table in json.loads((package / "privacy-card.json").read_text())["tables"]}
    assert tables["earners"]["levels"][0]["noise"].endswith(", of some")
    with pytest.raises(InvalidArgument):
        CellNoise.read(tables["earners"]["levels"][0]["noise"])
    assert not tables["rents"]["levels"][0]["noise"].endswith(", of some")


def test_what_a_household_changes_is_what_its_records_are_charged_for(tmp_path: Path) -> None:
    """All pairs of households of two people, whose records have all that they may: counts, counts of those with a value and
    sums, on every level. The most that one changes is twice what one record is said to, and is reached."""
    tables = "{people: {by: [{column: town, groups: {coast: [north, south], inland: [zyxEASTzyx]}}], epsilon: 2}, "
    tables += "earners: {by: town, having: income, epsilon: 2}, incomes: {by: town, sum: income, epsilon: 2}}"
    columns = PARTS["columns"].replace("domain: [0, 200]", "domain: [0, 2]")
    parts = {
        **PARTS,
        "tables": tables,
        "columns": columns.replace("do: drop, values: [0, 1], missing: {category: 1}", "do: drop"),
    }
    tiny = make_site(
        tmp_path / "site", cap=CAP, **{**parts, "person": "{column: person, unit: household, records_per_release: 2}"}
    )
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    income = policy.noise_columns["income"]
    records = list(itertools.product(TOWNS, (0.0, 2.0, income.reason_points[0])))

    def count(household: tuple[tuple[str, float], ...]) -> list[list[IntArray]]:
        """The exact cells of every table, by level."""
        table = pa.table({"town": [one for one, _ in household], "income": [number for _, number in household]})
        found = locate_tables(policy, lambda _, names: table.select(names), progress=lambda _: None)
        return [sum_levels(one.cell, one.amounts, one.tabulation.shape) for one in found]

    counted = [count(household) for household in itertools.combinations_with_replacement(records, 2)]
    for place, tabulation in enumerate(policy.tabulations.values()):
        for level, sensitivity in enumerate(tabulation.sensitivities):
            cells = np.array([tables[place][level] for tables in counted])
            changed = np.abs(cells[:, None, :] - cells[None, :, :])
            assert changed.sum(axis=2).max() == 2 * sensitivity.l1
            assert (changed**2).sum(axis=2).max() <= 4 * sensitivity.l2_squared
