"""Households with slots under dp-table: a slot that nobody fills is empty in every column, and how many are is protected."""

from __future__ import annotations

import json
from pathlib import Path

import frictionless
import pandas as pd
import pyarrow as pa
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy
from release_pipeline.policy.kinds import SynthesiseColumn, pick
from release_pipeline.policy.words import not_covered_words
from release_pipeline.report.counts import COUNTS_FILE, PAIRS_FILE
from release_pipeline.stages.entries import find_entries
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import TinySite, make_site
from tests.integration.test_households import HOUSEHOLDS, SLOTS, SURE, find_number, make_households, of_first

PARTS = {
    "person": f"{{column: person, unit: household, slots: {SLOTS}}}",
    "protect": "{method: dp-table, epsilon: 10}",
    "drop": "[name]",
    "publish": "{formats: [parquet, csv, dta, sav]}",
    "gates": "{min_rows: 2000, clamped_at_most: 10%}",
    "suppress": "",
    "columns": """
  person: {role: identifier, do: drop}
  remark: {role: quasi, do: synthesise, values: [r, empty, s], why: a value that is called like the reason}
  town:   {role: quasi, do: synthesise, values: [north, south], codes: {east: elsewhere}, missing: keep}
  sex:    {role: quasi, do: synthesise, values: [0, 1]}
  income: {role: confidential, do: synthesise, domain: [0, 200], grid: 1, outside: clamp, why: known,
           missing: keep, codes: {-8: refused}}
  rent:   {role: confidential, do: synthesise, domain: [0, 100], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}""",
}
CAP = "epsilon: 60, definition: dp, scope: table"
COLUMNS = ["remark", "town", "sex", "income", "rent"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> tuple[TinySite, Path]:
    """A site and its package."""
    rows = make_households()
    for place, row in enumerate(rows):
        row |= {"town": ("north", "north", "south", "east", "")[place % 5], "sex": str(place % 2), "remark": "rrs"[place % 3]}
    tiny = make_trusted_site(tmp_path_factory.mktemp("whole") / "site", keys, rows=rows, cap=CAP, **PARTS)
    return tiny, publish_release(tiny, keys)


@pytest.mark.slow
def test_a_row_is_empty_in_all_columns_or_in_none(published: tuple[TinySite, Path]) -> None:
    """As it is declared; about as many as there are; the claim has no exception for it."""
    package = published[1]
    data = pd.read_csv(package / "data.csv", dtype=str, keep_default_na=False)
    assert len(data) == HOUSEHOLDS * SLOTS
    reasons = data[[f"{name}_missing" for name in COLUMNS]] == "empty"
    assert reasons.all(axis=1).equals(reasons.any(axis=1))
    people = len(of_first(make_households()))
    empty = int(reasons["sex_missing"].sum())
    assert abs(empty - (HOUSEHOLDS * SLOTS - people)) < 150
    assert set(data["remark"]) <= {"r", "s", "empty", ""}
    assert set(data["town_missing"]) == {"", "elsewhere", "blank", "empty"}
    assert set(data["income_missing"]) == {"", "refused", "blank", "empty"}
    assert set(data.loc[~reasons["sex_missing"], "sex"]) == {"0", "1"}
    card = json.loads((package / "privacy-card.json").read_text())
    assert card["claim"]["epsilon"]["total"] == str(10 * SLOTS)
    assert not [words for words in card["claim"]["not_protected"] if "empty in several columns" in words]


@pytest.mark.slow
def test_how_many_people_there_are_is_in_noisy_counts_alone(published: tuple[TinySite, Path]) -> None:
    """In no other file of the package, and in no event; the kit gives an interval."""
    tiny, package = published
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    assert frictionless.validate(str(package / "datapackage.json")).valid
    people = len(of_first(make_households()))
    blobs = {file.name: file.read_bytes() for file in package.rglob("*") if file.is_file()}
    blobs["events"] = "\n".join(event.body for event in tiny.events()).encode()
    for number in (people, HOUSEHOLDS * SLOTS - people):
        assert not {
            name
            for name, blob in blobs.items()
            if name not in (COUNTS_FILE, PAIRS_FILE, "data.csv") and find_number(number, blob)
        }
    found = read_release(package).records(level=SURE)
    assert found.low <= people <= found.high
    assert found.high - found.low < HOUSEHOLDS


@pytest.mark.slow
def test_what_stands_for_an_empty_slot_is_no_entry_of_the_source(tmp_path: Path) -> None:
    """Neither a declared value of its name nor any number; a source that has one is refused like any other entry."""
    tiny = make_site(tmp_path / "site", rows=make_households(40), cap=CAP, **PARTS)
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    columns = pick(policy.columns, SynthesiseColumn)
    assert columns["remark"].empty == "empty*"
    assert columns["sex"].empty == "-2"
    assert columns["town"].reasons == ("elsewhere", "blank", "empty")
    town = columns["town"]
    assert find_entries(town, pa.chunked_array([["north", "east", "", "empty"]])).tolist() == [0, 2, 3, 4]
    assert not [words for words in not_covered_words(policy) if "several columns" in words]
