"""A sample with weights: what a weight may be, what reviewers are told of it, and what an analyst gets."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.mechanisms.basis.samples import weighted_mean
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.public import CARD_SCHEMA
from release_pipeline.publish.publish import publish
from release_pipeline.publish.verification import verify
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, appoint, review
from tests.integration.sites import TinySite, make_rows, make_site

ROWS = 300
WEIGHTS = ("1.5", "10", "40")
COLUMNS = """
  person: {role: identifier, do: drop}
  w:      {role: weight, do: keep, values: [1.5, 10, 40], why: design weights}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}"""
NOISED = COLUMNS.replace(
    "do: keep, values: [1.5, 10, 40], why: d", "do: noise, domain: [0, 50], grid: 0.5, outside: clamp, why: d"
)
PARTS = {
    "protect": "{method: dp-cdf, epsilon: 8, k: 3}",
    "drop": "[name, remark, rent]",
    "suppress": "",
    "gates": "{min_rows: 20}",
}
HEADER = ("person", "year", "town", "sex", "income", "rent", "name", "remark", "w")


def make_sample(home: Path, columns: str = COLUMNS, **parts: str) -> TinySite:
    """Who has more stands for fewer."""
    numbers = random.Random(2)  # noqa: S311
    rows = [
        {**row, "w": numbers.choice(WEIGHTS[: 1 + (int(row["income"]) < 600) + (int(row["income"]) < 300)])}
        for row in make_rows(ROWS)
    ]
    tiny = make_site(home, cap="epsilon: 40, definition: dp, scope: column", **{**PARTS, "columns": columns, **parts})
    tiny.write_rows(rows, header=HEADER)
    return tiny


def of_release(tiny: TinySite) -> pd.DataFrame:
    """The records of the first release."""
    table = pd.read_csv(tiny.home / "people.csv")
    return table[table["year"] == 1]


@pytest.mark.parametrize("columns", [COLUMNS, NOISED], ids=["kept", "noised"])
def test_reviewers_see_weighted_figures_beside_plain_ones(tmp_path: Path, columns: str) -> None:
    """By the weights of the records, and of the released table by its own; nothing of it gets to the public facts."""
    columns = columns.replace("outside: fail, why: known", "outside: fail, why: known, atoms: [600]")
    tiny = make_sample(tmp_path / "site", columns, audit="{groups: [town]}")
    facts = run_release(tiny.flow()).facts
    audit = json.loads((tiny.folder() / "evidence.json").read_text())["audit"]
    records, released = of_release(tiny), pd.read_csv(tiny.folder() / "data.csv")
    found = audit["sample"]["weighted"]["income"]
    assert list(audit["sample"]["weighted"]) == ["income"]
    for side, table in (("original", records), ("released", released)):
        weights, values = (table[name].to_numpy(dtype=np.float64) for name in ("w", "income"))
        assert found[side]["mean"] == pytest.approx(weighted_mean(values, weights), rel=1e-5)
        assert found[side]["plain"] == pytest.approx(values.mean(), rel=1e-5)
    assert found["original"]["mean"] < found["original"]["plain"] - 50
    page = (tiny.folder() / "report.html").read_text()
    assert "A sample with weights" in page
    assert "unique in the population too" in page
    assert not {"sample", "subgroups", "spread", "atoms"} & set(re.findall(r"\w+", json.dumps(facts)))


def test_small_groups_never_take_a_weight(tmp_path: Path) -> None:
    """Another cell is blanked, or the record goes: one without its weight would stand for nobody."""
    tiny = make_sample(tmp_path / "site", suppress="{quasi_groups_below: 30, at_most: 100%}")
    run_release(tiny.flow())
    found = json.loads((tiny.folder() / "evidence.json").read_text())["audit"]["sample"]
    assert found["weighted"]["income"]["released"]["mean"] is not None
    released = pd.read_csv(tiny.folder() / "data.csv")
    assert not released["w"].isna().any()
    assert released[["town", "sex"]].isna().any().any() or len(released) < ROWS
    sizes = released.astype(str).groupby(["w", "town", "sex"]).size()
    assert sizes.min() >= 30


DROPPED = COLUMNS.replace(
    "do: keep, values: [1.5, 10, 40], why: design weights", "do: drop, domain: [1, 40], grid: 0.25, outside: clamp"
)
TABLES = "{people: {by: [town, sex], weight: w, epsilon: 2}, wages: {by: town, sum: income, weight: w, epsilon: 1}}"
CANARY = "31.4159265"  # a weight, which is 31.5 on the grid


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> TinySite:
    """A published release whose weight is in its tables alone."""
    tiny = make_sample(
        tmp_path_factory.mktemp("weighted") / "site", DROPPED, tables=TABLES, gates="{min_rows: 20, clamped_at_most: 50%}"
    )
    rows = pd.read_csv(tiny.home / "people.csv", dtype=str, keep_default_na=False).to_dict("records")
    for row in rows[::7]:
        row["w"] = CANARY
    for row in rows[3::50]:
        row["w"] = "90"
    tiny.write_rows(rows, header=HEADER)
    appoint(tiny, keys)
    run_release(tiny.flow())
    review(tiny, keys, "ben", "cleo")
    publish(tiny.site, RELEASE, key=keys["robot"])
    return tiny


@pytest.mark.slow
def test_a_dropped_weight_is_in_the_totals_and_nowhere_else(weighted: TinySite) -> None:
    """Weighted cells are near the source's own, clamped weights included; no file of candidate or package has one weight."""
    table = of_release(weighted)
    weights = (table["w"].clip(1, 40) * 4).round() / 4
    package = weighted.site.package(str(RELEASE))
    cells = pd.read_csv(package / "data.table-wages.csv").set_index("town")["noisy"]
    true = (weights * table["income"]).groupby(table["town"]).sum()
    assert 0 < (cells - true).abs().max() < 80_000 * 40  # e^-40
    people = pd.read_csv(package / "data.table-people.csv")
    assert 0 < abs(people["noisy"].sum() - weights.sum()) < 6 * 40 * 40
    assert people["value"].min() >= 0
    assert list(pd.read_csv(package / "data.csv").columns) == ["town", "sex", "income"]
    for folder in (package, weighted.folder()):
        for file in folder.rglob("*"):
            assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file.name
    evidence = json.loads((weighted.folder() / "evidence.json").read_text())
    assert 0 < evidence["clamping"]["w"]["share"] < 0.05
    assert "sample" not in evidence["audit"]
    assert "column w:" in " ".join(evidence["warnings"])


@pytest.mark.slow
def test_the_card_tells_of_the_weight_and_an_analyst_gets_weighted_answers(weighted: TinySite) -> None:
    """From the package alone, with words that sampling is not in them; and everything verifies."""
    package = weighted.site.package(str(RELEASE))
    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    assert [table["weight"] for table in card["tables"]] == [{"column": "w", "least": "1", "largest": "40"}] * 2
    assert [table["levels"][0]["noise"] for table in card["tables"]] == ["Laplace 160", "Laplace 320000"]
    assert "represent, by their weights w" in card["tables"][0]["words"]
    assert card["claim"]["epsilon"]["total"] == "11"
    assert not [finding for finding in verify(weighted.home, deep=True) if finding.level == "FAIL"]
    release, table = read_release(package), of_release(weighted)
    weights = (table["w"].clip(1, 40) * 4).round() / 4
    for town in ("north", "south"):
        mine = table["town"] == town
        found = release.table("wages").mean({"town": town}, level=0.999999)
        assert found.low <= weighted_mean(table["income"][mine].to_numpy(float), weights[mine].to_numpy()) <= found.high
        share = release.table("people").share({"town": town}, level=0.999999)
        assert share.low <= weights[mine].sum() / weights.sum() <= share.high
        assert "sample is from the population" in share.basis
