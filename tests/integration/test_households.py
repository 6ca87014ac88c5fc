"""People and households with slots: each has as many rows, so that no number of rows shows how many records one has."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import jsonschema
import numpy as np
import pandas as pd
import pytest

from release_pipeline.analyst import read_release
from release_pipeline.errors import DataRefused, PolicyInvalid
from release_pipeline.flow import checkpoints
from release_pipeline.flow import release as flow_release
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy.load import parse_policy
from release_pipeline.privacy.budget import format_nano
from release_pipeline.report.counts import COUNTS_FILE
from release_pipeline.report.public import CARD_SCHEMA
from release_pipeline.store.registry import ReleaseId
from tests.integration.people import review
from tests.integration.publishing import failures_of, make_trusted_site
from tests.integration.sites import GX_WARNINGS, Row, TinySite, make_site, materializations, policy_text, run_job

HOUSEHOLDS, SLOTS = 600, 4
SURE = 1 - 1e-9  # of intervals around noise that no test knows
PARTS = {
    "person": f"{{column: person, unit: household, slots: {SLOTS}}}",
    "protect": "{method: dp-cdf, epsilon: 2, k: 5}",
    "columns": """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: drop}
  sex:    {role: quasi, do: drop}
  income: {role: confidential, do: noise, domain: [0, 200], grid: 1, outside: clamp, why: known,
           missing: keep, codes: {-8: refused}}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}""",
}
CAP = "epsilon: 40, definition: dp, scope: column"


def make_households(count: int = HOUSEHOLDS, *, seed: int = 3) -> list[Row]:
    """Of one to four people, in any order; some of them lack something."""
    numbers = random.Random(seed)  # noqa: S311
    rows = [
        {
            "person": f"h{home:04}",
            "year": release,
            "town": "north",
            "sex": "0",
            "income": numbers.choice([str(numbers.randrange(201)), str(numbers.randrange(201)), "-8", ""]),
            "rent": numbers.choice([str(numbers.randrange(201) / 2), ""]),
            "name": "n",
            "remark": "r",
        }
        for release in ("1", "2")
        for home in range(count)
        for _ in range(numbers.choice([1, 1, 2, 2, 3, 4]))
    ]
    numbers.shuffle(rows)
    return rows


def of_first(rows: list[Row]) -> list[Row]:
    """Those of the first release."""
    return [row for row in rows if row["year"] == "1"]


def find_number(number: int, blob: bytes) -> list[bytes]:
    """Where a number stands by itself, with a comma for thousands or without."""
    shown = f"{number}|{number:,}".encode()
    return re.findall(rb"(?<![\w.,-])(?:%s)(?![\w.,]*\w)" % shown, blob)


@dataclass(frozen=True)
class Published:
    """A release of households that went through Dagster to the public."""

    tiny: TinySite
    package: Path
    storage: Path
    logged: str


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> Published:
    """With its package, and all that Dagster keeps."""
    home = tmp_path_factory.mktemp("households")
    tiny = make_trusted_site(home / "site", keys, rows=make_households(), cap=CAP, **PARTS)
    storage = home / "dagster"
    storage.mkdir()
    with dg.DagsterInstance.local_temp(str(storage)) as instance:
        result = run_job(tiny, instance=instance)
        assert result.success
        assert materializations(result)["ingested"].metadata["rows"].value == HOUSEHOLDS * SLOTS
        logged = "\n".join(entry.user_message for entry in instance.all_logs(result.run_id))
    name = ReleaseId("people", "1", 1)
    review(tiny, keys, "ben", "cleo", release=name)
    return Published(tiny, publish(tiny.site, name, key=keys["robot"]), storage, logged)


@pytest.mark.slow
@GX_WARNINGS
def test_how_many_people_there_are_is_told_nowhere(published: Published) -> None:
    """Neither in Dagster's storage nor in its logs, nor in registry and package; the number of households and of rows may be."""
    people = len(of_first(make_households()))
    empties = HOUSEHOLDS * SLOTS - people
    files = [file for place in (published.storage, published.package) for file in place.rglob("*") if file.is_file()]
    registry = [file for file in published.tiny.home.rglob("*.duckdb*") if published.tiny.site.vault not in file.parents]
    assert registry
    blobs = {str(file): file.read_bytes() for file in (*files, *registry)}
    blobs["events"] = "\n".join(event.body for event in published.tiny.events()).encode()
    blobs["log"] = published.logged.encode()
    assert not {name for name, blob in blobs.items() if find_number(people, blob)}
    del blobs[str(published.package / COUNTS_FILE)]  # noisy counts may be right
    assert not {name for name, blob in blobs.items() if find_number(empties, blob)}
    assert any(find_number(HOUSEHOLDS * SLOTS, blob) for name, blob in blobs.items() if str(published.storage) in name)
    assert find_number(people, f"rows {people:,}".encode()), "the search finds what it looks for"


@pytest.mark.slow
@GX_WARNINGS
def test_a_package_has_the_empty_slots(published: Published) -> None:
    """As rows with a reason, about as many as there are; card and charge are about households."""
    rows = of_first(make_households())
    assert not failures_of(verify(published.package, [str(published.tiny.site.officer)]))
    table = pd.read_csv(published.package / "data.csv")
    assert len(table) == HOUSEHOLDS * SLOTS
    for name in ("income", "rent"):
        assert abs((table[f"{name}_missing"] == "empty").sum() - (len(table) - len(rows))) <= 60
    card = json.loads((published.package / "privacy-card.json").read_text())
    jsonschema.validate(card, CARD_SCHEMA)
    assert (card["claim"]["privacy_unit"], card["claim"]["record_count"]) == ("household", "protected")
    assert card["claim"]["records_per_person"] == SLOTS
    assert card["rows"] == {"in": HOUSEHOLDS * SLOTS, "out": HOUSEHOLDS * SLOTS, "kind": None}
    assert "with any number of records up to 4" in card["claim"]["neighbours"]
    assert "every household has 4 records, empty ones included" in card["claim"]["statement"]
    assert any("empty in several columns at once" in words for words in card["claim"]["not_protected"])
    assert "Records per household: at most 4; how many one has is protected." in " ".join(
        (published.package / "privacy-card.html").read_text().split()
    )
    [charge] = published.tiny.charges()
    assert format_nano(charge.loss.dp_column or 0) == card["claim"]["epsilon"]["total"] == "8"
    release = read_release(published.package)
    empty = release.missing("income", "empty", level=SURE)
    assert empty.low <= 1 - len(rows) / len(table) <= empty.high
    values = np.array([float(row["income"]) for row in rows if row["income"] not in ("-8", "")])
    mean = release.mean("income", level=SURE)
    assert mean.low <= values.mean() <= mean.high
    rents = np.array([float(row["rent"] or 0) for row in rows])
    mean = release.mean("rent", level=SURE)
    assert mean.low <= rents.mean() <= mean.high
    records = release.records(level=SURE)
    assert records.low <= len(rows) <= records.high < len(table)
    assert any("(records)" in words for words in release.explain())
    blank = release.missing("income", "blank", level=SURE)
    assert blank.low <= sum(row["income"] == "" for row in rows) / len(table) <= blank.high


def ingest(tiny: TinySite) -> dict[str, object]:
    """What the first two stages tell."""
    flow = tiny.flow()
    return {"ingested": flow.ingest().facts, "validated": (done := flow.validate()).facts, "refused": done.refusal}


def test_no_stage_tells_how_many_records_one_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sources in which one household has one record and four: the stages report the same. Without the filling
    the number of rows distinguishes them."""
    rows = make_households(30)
    mine = [row for row in rows if row["person"] == "h0007" and row["year"] == "1"]
    others = [row for row in rows if row not in mine]
    told: dict[bool, list[dict[str, object]]] = {True: [], False: []}
    monkeypatch.setattr(checkpoints, "round_up", int)  # to the last record, so that the control shows a difference
    for fills in (True, False):
        if not fills:
            monkeypatch.setattr(flow_release, "fill_slots", lambda *_: None)
        for size in (1, 4):
            tiny = make_site(tmp_path / f"{fills} {size}", rows=[*others, *mine[:1] * size], cap=CAP, **PARTS)
            told[fills].append(ingest(tiny))
    assert told[True][0] == told[True][1]
    assert told[True][0]["ingested"] == {"rows": 30 * SLOTS, "columns_read": 3, "columns_in_source": 8}
    assert told[False][0] != told[False][1]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda rows: [*rows, *(dict(rows[0]) for _ in range(4))],
            "column person: up to 10 households have more than the 4 declared slots",
        ),
        (lambda rows: [{**rows[0], "person": " "}, *rows[1:]], "column person: up to 10 records without a household."),
    ],
)
def test_what_fits_no_slot_is_refused_by_counts_alone(
    tmp_path: Path, spoil: Callable[[list[Row]], list[Row]], words: str
) -> None:
    """Before anything is counted or kept."""
    rows = sorted(of_first(make_households(30)), key=lambda row: row["person"])
    tiny = make_site(tmp_path / "site", rows=spoil(rows), cap=CAP, **PARTS)
    with pytest.raises(DataRefused) as refused:
        tiny.flow().ingest()
    assert [words] == [finding[: len(words)] for finding in refused.value.findings]
    assert "raw" not in tiny.tables()
    assert not tiny.charges()


@pytest.mark.parametrize(
    ("part", "old", "new", "words"),
    [
        (
            "person",
            PARTS["person"],
            "{column: person, unit: household}",
            "needs slots, which hide how many records a household has, or",
        ),
        ("person", "slots: 4", "slots: 4, records_per_release: 4", "either slots or records_per_release"),
        (
            "columns",
            "sex:    {role: quasi, do: drop}",
            "sex:    {role: quasi, do: keep, values: [0, 1], why: needed}",
            "'sex' is released as it is, and would show exactly which slots are empty",
        ),
        ("tables", "", "{people: {by: town, epsilon: 1}}", "Declare its values with do: drop"),
    ],
)
def test_what_does_not_go_with_slots_is_told(part: str, old: str, new: str, words: str) -> None:
    """With the way out, and nothing beside it."""
    weight = "do: noise, domain: [0, 10], grid: 1, outside: clamp, why: known"
    text = policy_text(**{**PARTS, part: PARTS.get(part, "").replace(old, new).replace("WEIGHT", weight)})
    with pytest.raises(PolicyInvalid) as refused:
        parse_policy(text, name="people")
    said = refused.value.faults
    assert any(words in str(fault) for fault in said), said
    assert len(said) == 1 + (part == "protect"), said  # and codes
