"""Weights that are published in place of the survey's own: made of published tables and released rows, and of nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pyreadstat
import pytest

from release_pipeline.analyst import NoHonestAnswer, read_release
from release_pipeline.errors import PolicyInvalid
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.tables import read_table
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy
from release_pipeline.policy.plan import make_plan
from release_pipeline.policy.views import plan_to_json
from release_pipeline.privacy.samples import weighted_mean
from release_pipeline.report.public import CARD_SCHEMA
from release_pipeline.stages.calibrate import calibrate_rows, check_calibrated
from release_pipeline.stages.column_table import load_table
from release_pipeline.stages.tables import measure_tables
from tests.integration.people import RELEASE, appoint, review
from tests.integration.sites import TinySite
from tests.integration.test_weights import CANARY, COLUMNS, HEADER, PARTS, ROWS, make_sample, of_release

CALIBRATED = COLUMNS.replace(
    "do: keep, values: [1.5, 10, 40], why: design weights",
    "do: calibrate, to: [people, towns], domain: [1, 40], grid: 0.25, outside: clamp, label: People for whom one stands",
)
OTHER = {"1.5": "40", "10": "2", "40": "10"}  # weight instead of which
TABLES = "{people: {by: [town, sex], weight: w, epsilon: 4}, towns: {by: town, weight: w, epsilon: 4}}"


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> TinySite:
    """A published release with calibrated weights; every seventh record has a weight that is searched for."""
    parts = {"tables": TABLES, "gates": "{min_rows: 20, clamped_at_most: 50%}", "publish": "{formats: [parquet, csv, dta, sav]}"}
    tiny = make_sample(tmp_path_factory.mktemp("calibrated") / "site", CALIBRATED, **parts)
    rows = pd.read_csv(tiny.home / "people.csv", dtype=str, keep_default_na=False).to_dict("records")
    for row in rows[::7]:
        row["w"] = CANARY
    tiny.write_rows(rows, header=HEADER)
    appoint(tiny, keys)
    tiny.flow().run()
    review(tiny, keys, "ben", "cleo")
    publish(tiny.site, RELEASE, key=keys["robot"])
    return tiny


@pytest.mark.slow
def test_rows_add_up_to_the_published_tables(calibrated: TinySite) -> None:
    """To the first table's cells; equal labels have one weight; no true weight is in a file of candidate or package."""
    package = calibrated.site.package(str(RELEASE))
    data = pd.read_csv(package / "data.csv")
    assert list(data.columns) == ["w", "town", "sex", "income"]
    assert (data["w"] > 0).all()
    assert ((data["w"] / 0.25) % 1 == 0).all()
    assert (data.groupby(["town", "sex"])["w"].nunique() == 1).all()
    assert len(data["w"].unique()) > 1
    towns = pd.read_csv(package / "data.table-towns.csv").set_index("town")["value"]
    people = pd.read_csv(package / "data.table-people.csv")["value"].sum()
    reached = data.groupby("town")["w"].sum()
    assert (reached / reached.sum() - towns / towns.sum()).abs().max() < 0.02
    assert reached.sum() == pytest.approx(people, rel=0.02)
    for folder in (package, calibrated.folder()):
        for file in folder.rglob("*"):
            assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file.name


@pytest.mark.slow
def test_a_weighted_share_is_nearer_to_the_true_one_than_an_unweighted_one(calibrated: TinySite) -> None:
    """Of the towns, where weights differ."""
    table, data = of_release(calibrated), pd.read_csv(calibrated.site.package(str(RELEASE)) / "data.csv")
    weights = ((table["w"].clip(1, 40) * 4).round() / 4).to_numpy()
    true = [weighted_mean((table["town"] == town).to_numpy(float), weights) for town in ("north", "south", "east")]
    made = [weighted_mean((data["town"] == town).to_numpy(float), data["w"].to_numpy()) for town in ("north", "south", "east")]
    plain = [float((data["town"] == town).mean()) for town in ("north", "south", "east")]
    assert np.abs(np.subtract(made, true)).sum() < np.abs(np.subtract(plain, true)).sum()


@pytest.mark.slow
def test_rows_and_published_tables_alone_make_the_weights(calibrated: TinySite) -> None:
    """From the files of the package and the policy the same column comes again; another one is found."""
    package, policy = calibrated.site.package(str(RELEASE)), calibrated.site.policy("people")
    files = {name: (package / f"data.table-{name}.csv").read_text() for name in policy.tables}
    table = load_table(read_table(package / "data.csv", format="csv", policy=policy))
    again, _ = calibrate_rows(table.drop_columns(["w"]), policy, files)
    assert again.column("w").to_pylist() == table.column("w").to_pylist()
    assert not list(check_calibrated(table, policy, files))
    spoilt = table.set_column(0, "w", [[0.25] * ROWS])
    assert list(check_calibrated(spoilt, policy, files)) == ["Column w is not what rows and published tables make."]


@pytest.mark.slow
def test_card_and_kit_tell_that_they_are_not_the_surveys(calibrated: TinySite) -> None:
    """The card names the tables and the largest gap; the kit answers by these weights with a bound, and gives no mean of them."""
    package = calibrated.site.package(str(RELEASE))
    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    [column] = [known for known in card["columns"] if known["done"] == "calibrate"]
    assert column["calibrated"]["to"] == ["people", "towns"]
    assert "people: " in column["calibrated"]["words"]
    assert "not the survey's own" in " ".join(card["how_to_use"])
    assert "calibrate" in (package / "privacy-card.html").read_text()
    assert "made of the published tables" in (package / "datapackage.json").read_text()
    assert not [finding for finding in verify(calibrated.home, deep=True) if finding.level == "FAIL"]
    for form, read in (("dta", pyreadstat.read_dta), ("sav", pyreadstat.read_sav)):
        cells, known = read(package / f"data.{form}")
        assert known.column_names_to_labels["w"] == column["label"] == "People for whom one stands"
        assert cells["w"].tolist() == pd.read_csv(package / "data.csv")["w"].tolist()
    release = read_release(package)
    assert "not those of the survey" in release.mean("sex", weights="w").words
    with pytest.raises(NoHonestAnswer):
        release.mean("w")


@pytest.mark.slow
def test_a_weight_comes_in_by_the_noisy_tables_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All weights are changed and the noisy cells are held: the published table keeps its bytes. With cells of their own it does
    not, or the test would see nothing."""
    found: list[bytes] = []
    held: list[Any] = []
    holds = True

    def hold(*given: Any, **named: Any) -> Any:
        held.append(measure_tables(*given, **named))
        return held[0] if holds else held[-1]

    monkeypatch.setattr("release_pipeline.flow.release.measure_tables", hold)
    for name, changes, holds in (("one", False, True), ("held", True, True), ("other", True, False)):  # noqa: B007  hold reads it
        tiny = make_sample(tmp_path / name, CALIBRATED, tables=TABLES)
        if changes:
            rows = pd.read_csv(tiny.home / "people.csv", dtype=str, keep_default_na=False).to_dict("records")
            tiny.write_rows([{**row, "w": OTHER[row["w"]]} for row in rows], header=HEADER)
        tiny.flow().run()
        columns = pd.read_csv(tiny.folder() / "data.csv", dtype=str)[["town", "sex", "w"]]
        found.append(columns.drop_duplicates().sort_values(["town", "sex"]).to_csv(index=False).encode())
    assert found[0] == found[1] != found[2]


AREAS = "{column: town, groups: {coast: [north, south], inland: [east]}}"


@pytest.mark.slow
def test_declared_ends_hold_and_facts_say_what_they_cost(tmp_path: Path) -> None:
    """Every published weight lies between them, on the grid, and some are at both; with wider ends the rows come nearer to the
    tables. Tables in levels: the finest is what rows are raked to. `check --json` says all of it."""
    gaps: list[float] = []
    for at_least, at_most in ((7.5, 7.75), (0.5, 30)):
        ends = f"outside: clamp, at_least: {at_least}, at_most: {at_most},"
        tables = f"{{towns: {{by: [{AREAS}], weight: w, epsilon: 30}}}}"
        columns = CALIBRATED.replace("outside: clamp,", ends).replace("[people, towns]", "[towns]")
        tiny = make_sample(tmp_path / str(at_most), columns, tables=tables)
        [declared] = plan_to_json(make_plan(tiny.site.policy("people")))["calibrated"]
        wanted = {"to": ["towns"], "grid": "0.25", "at_least": str(at_least), "at_most": str(at_most)}
        assert declared == {"name": "w", **wanted}
        facts = tiny.flow().run().facts
        data = pd.read_csv(tiny.folder() / "data.csv")
        assert (data["w"].min(), data["w"].max()) == (at_least, at_most) or at_most == 30
        assert data["w"].between(at_least, at_most).all()
        assert ((data["w"] / 0.25) % 1 == 0).all()
        cells = pd.read_csv(tiny.folder() / "data.table-towns.csv", dtype={"level": str})
        finest = cells[cells["level"] == cells["level"].iloc[-1]].set_index("town")["value"]
        assert set(finest.index) == {"north", "south", "east"}
        reached = data.groupby("town")["w"].sum()
        gaps.append(float((reached - finest).abs().max() / finest.sum()))
        assert facts["weights"]["towns"] in {f"{gaps[-1]:.1%}", "less than 0.1%"}
    assert gaps[1] < gaps[0]
    assert gaps[1] < 0.006  # half a step for each of a hundred rows


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[people, towns]", "[people, nope]", "there is no table 'nope'"),
        ("[people, towns]", "[people, plain]", "no count weighted by 'w'"),
        ("[people, towns]", "[people, wages]", "no count weighted by 'w'"),
        ("[people, towns]", "[people, halves]", "groups of 'town' alone"),
        ("outside: clamp, label", "outside: clamp, at_most: 0.3, label", "no step of the grid"),
        ("outside: clamp, label", "outside: clamp, at_least: 9, at_most: 3, label", "not above at_least"),
        ("domain: [1, 40]", "domain: [-1, 40]", "no number below 0"),
        ("role: weight", "role: quasi", "role"),
        ("do: keep, values: [north, south, east], why: needed", "do: drop, values: [north, south, east]", "which is in no row"),
    ],
)
def test_what_no_weights_can_be_made_of_is_told(tmp_path: Path, old: str, new: str, words: str) -> None:
    """In the policy, before anything is read."""
    tiny = make_sample(tmp_path / "site")
    more = ", plain: {by: town, epsilon: 1}, wages: {by: town, sum: income, weight: w, epsilon: 1}, "
    groups = "halves: {by: [{column: town, groups: {a: [north, south], b: [east]}, levels: [1]}], weight: w, epsilon: 1}}"
    tables = TABLES[:-1] + more + groups
    tiny.write_policy(**{**PARTS, "columns": CALIBRATED.replace(old, new), "tables": tables})
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert words in " ".join(map(str, refused.value.faults))


def test_blanked_cells_are_refused(tmp_path: Path) -> None:
    """A row with one is in no cell of a table."""
    tiny = make_sample(tmp_path / "site")
    parts = {**PARTS, "columns": CALIBRATED, "tables": TABLES, "suppress": "{quasi_groups_below: 3, at_most: 100%}"}
    tiny.write_policy(**parts)
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert "may be blanked" in " ".join(map(str, refused.value.faults))
