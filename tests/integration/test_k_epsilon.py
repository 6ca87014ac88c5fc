"""(k,epsilon)-anonymity through the whole pipeline: hierarchies, both groupings, what is refused, and what is published."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pycanon import anonymity

from release_pipeline.errors import Blocked, DataRefused, GateFailed
from release_pipeline.masking.classes import ClassStrategy
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.publish.publish import publish
from release_pipeline.store.files import Probe
from release_pipeline.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, trust_people
from tests.integration.sites import TinySite, make_site

HEADER = ("person", "year", "age", "zip", "born", "town", "income", "rent", "illness", "remark")
QUASI = ["age", "zip", "born", "town"]
OLA = "{method: k-epsilon, grouping: ola, k: 4, epsilon: 2}"
MONDRIAN = "{method: k-epsilon, grouping: mondrian, k: 4, epsilon: 2, weights: {income: 3, rent: 1}}"
SUPPRESS = "{grouping_at_most: 20%, confidence: 99%, at_most: 60%}"
AGE = "{intervals: [5, 10, 50], domain: [0, 99], grid: 1, outside: fail}"
TOWN = "{groups: {coast: [north, south, unknown], inland: [east]}}"
PERIODS = "day, month, quarter, year, decade"
SECRET = b"k" * SECRET_BYTES
CANARY = "Kanarienvogel"
Row = dict[str, str]


def columns(*, age: str = AGE, town: str = TOWN, missing: str = "{category: unknown}", more: str = "") -> str:
    """The columns of the policy; every form of hierarchy is among them."""
    return f"""
  person: {{role: identifier, do: drop}}
  age:    {{role: quasi, do: generalise, hierarchy: {age}, why: a human age}}
  zip:    {{role: quasi, do: generalise, hierarchy: {{prefixes: [5, 3, 1], of: digits}}}}
  born:   {{role: quasi, do: generalise, hierarchy: {{dates: [{PERIODS}], first: 1900-01-01, last: 2020-12-31}}}}
  town:   {{role: quasi, do: generalise, hierarchy: {town}, missing: {missing}}}
  income: {{role: quasi, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}}
  rent:   {{role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}}
  illness: {{role: confidential, do: keep, values: [none, cold, "NA"], why: needed}}{more}"""


MONDRIAN_COLUMNS = columns(age="{domain: [0, 99], grid: 1, outside: fail}")


def records(count: int = 120, *, releases: Sequence[str] = ("1", "2"), seed: int = 0) -> list[Row]:
    """The same people in each release; one town in ten is missing; "NA" is an illness, not a missing one."""
    numbers = random.Random(seed)  # noqa: S311
    return [
        {
            "person": f"p{i:04}",
            "year": release,
            "age": str(numbers.randrange(20, 60)),
            "zip": numbers.choice(["10115", "10117", "10999", "20095", "20099"]),
            "born": f"{numbers.randrange(1960, 2000)}-{numbers.randrange(1, 13):02}-{numbers.randrange(1, 29):02}",
            "town": numbers.choice(["north", "south", "east", "east", ""]),
            "income": str(numbers.randrange(0, 1001)),
            "rent": str(numbers.randrange(0, 201) / 2),
            "illness": numbers.choice(["none", "cold", "NA"]),
            "remark": f"{CANARY} {i}",
        }
        for release in releases
        for i in range(count)
    ]


def site_of(home: Path, rows: Sequence[Row] | None = None, **parts: str) -> TinySite:
    """A site with one k-epsilon policy and a cap by releases."""
    payload = {
        "protect": OLA,
        "columns": columns(),
        "drop": "[remark]",
        "suppress": SUPPRESS,
        "gates": "{min_rows: 20, differencing_below: 0}",
    }
    tiny = make_site(home, rows=[], cap="releases: 2", **{**payload, **parts})
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    tiny.write_rows(records() if rows is None else rows, header=HEADER)
    return tiny


def mondrian_site(home: Path, rows: Sequence[Row] | None = None, **parts: str) -> TinySite:
    """The same, cut by mondrian with l = 2."""
    payload = {"protect": MONDRIAN, "columns": MONDRIAN_COLUMNS, "suppress": "{confidence: 99%, at_most: 60%}"}
    return site_of(home, rows, **{**payload, **parts})


def run(tiny: TinySite, release: str = "1", **probe: Any) -> dict[str, Any]:
    """The facts of the candidate, its noise drawn with a secret that the test knows."""
    chosen = Probe(new_secret=lambda: SECRET, **probe)
    return run_release(open_release(tiny.site, "people", release, probe=chosen)).facts


def released_of(tiny: TinySite, release: str = "1") -> pd.DataFrame:
    """The candidate's data as anybody reads them, with no text taken for a missing one."""
    texts: dict[Any, Any] = dict.fromkeys([*QUASI, "illness"], str)
    return pd.read_csv(tiny.folder(release) / "data.csv", dtype=texts, keep_default_na=False)


def evidence_of(tiny: TinySite) -> dict[str, Any]:
    return json.loads((tiny.folder() / "evidence.json").read_text())


def label_by_hand(name: str, entry: str, level: int) -> str:
    """What an entry becomes on a level of the hierarchies above, written down anew."""
    if name == "age":
        number = int(entry)
        return [entry, *(f"{number // w * w}-{min(number // w * w + w - 1, 99)}" for w in (5, 10, 50)), "*"][level]
    if name == "zip":
        return [entry, entry[:3] + "**", entry[:1] + "****", "*"][level]
    if name == "born":
        quarter = f"{entry[:4]}-Q{math.ceil(int(entry[5:7]) / 3)}"
        return [entry, entry[:7], quarter, entry[:4], entry[:3] + "0s", "*"][level]
    entry = entry or "unknown"
    return [entry, "inland" if entry == "east" else "coast", "*"][level]


def test_every_form_of_hierarchy_is_released_at_one_level_for_all(tmp_path: Path) -> None:
    """The released labels are those of the noted levels, counted by hand from the source; small classes alone are gone."""
    tiny = site_of(tmp_path / "site", suppress="{grouping_at_most: 20%, at_most: 20%}")
    facts = run(tiny)
    levels = {name: int(payload.split()[0]) for name, payload in facts["levels"].items()}
    mine = [row for row in records() if row["year"] == "1"]
    classes = Counter(tuple(label_by_hand(name, row[name], levels[name]) for name in QUASI) for row in mine)
    released = released_of(tiny)
    found = Counter(released[QUASI].itertuples(index=False, name=None))
    assert found == {labels: count for labels, count in classes.items() if count >= 4}
    assert 0 < len(mine) - len(released) <= 0.2 * len(mine)
    assert facts["anonymity_k"] == min(found.values()) == anonymity.k_anonymity(released, QUASI) >= 4
    assert set(released["illness"]) == {"none", "cold", "NA"}  # a value that others take for a missing one
    assert "unknown" in set(released["town"]) or levels["town"] > 0


def test_mondrian_gives_every_class_its_own_labels(tmp_path: Path) -> None:
    """Ranges of its own ages, prefixes and periods of its records, at least l illnesses; labels cover the source."""
    tiny = mondrian_site(tmp_path / "site")
    facts = run(tiny)
    assert "levels" not in facts
    released = released_of(tiny)
    assert anonymity.k_anonymity(released, QUASI) >= 4
    assert anonymity.l_diversity(released, QUASI, ["illness"]) >= 2
    assert released["age"].nunique() > 3
    tables = {name: table.to_pandas() for name, table in tiny.tables().items()}
    masked = tables["masked"].set_index("release_pipeline_record")
    source = pd.DataFrame([row for row in records() if row["year"] == "1"])
    for record, row in masked.iterrows():
        original = source.loc[record]
        ages = [int(part) for part in row["age"].split("-")]
        assert ages[0] <= int(original["age"]) <= ages[-1]
        assert row["zip"] in {label_by_hand("zip", original["zip"], level) for level in range(4)}
        assert row["born"] in {label_by_hand("born", original["born"], level) for level in range(6)}
        assert row["town"] in {label_by_hand("town", original["town"], level) for level in range(3)}
    for _, part in tables["masked"].groupby("release_pipeline_class"):
        ages = source.loc[part["release_pipeline_record"], "age"].astype(int)
        assert set(part["age"]) == {str(ages.min()) if ages.min() == ages.max() else f"{ages.min()}-{ages.max()}"}


@pytest.mark.parametrize(("column", "entry"), [("zip", "1011"), ("born", "1899-12-31")])
def test_entries_that_a_hierarchy_misses_stop_the_release(tmp_path: Path, column: str, entry: str) -> None:
    """ARX's users lose values in silence; here they are counted, by column, and not shown."""
    rows = records()
    for row in rows[:3]:
        row[column] = entry
    rows[3][column] = f"{CANARY}!"
    tiny = site_of(tmp_path / "site", rows)
    with pytest.raises(DataRefused) as refused:
        run(tiny)
    payload = " ".join(refused.value.findings)
    assert f"column {column}: up to 10 records with up to 10 different entries that the hierarchy does not cover." in payload
    assert entry not in payload.replace(f"column {column}", "")
    assert CANARY not in payload
    assert tiny.charges() == []


def test_grouping_that_cannot_succeed_is_refused_for_nothing(tmp_path: Path) -> None:
    """Fewer than k records have the rarer of two coarsest labels: no classes, no charge, and what to do."""
    payload = columns(town="{rows: [[north, coast], [south, coast], [unknown, coast], [east, inland]]}")
    tiny = site_of(
        tmp_path / "site", columns=payload, protect=OLA.replace("k: 4", "k: 60"), gates="{min_rows: 120, differencing_below: 0}"
    )
    with pytest.raises(DataRefused, match="no classes could be made"):
        run(tiny)
    assert tiny.charges() == []


def test_more_suppression_than_allowed_blocks_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the charge by a forecast; and, where that had let it pass, after the draw."""
    rule = "{grouping_at_most: 20%, confidence: 50%, at_most: 20.5%}"
    forecast = site_of(tmp_path / "forecast", suppress=rule, protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 60}")
    with pytest.raises(GateFailed, match="suppression to expect"):
        run(forecast)
    assert forecast.charges() == []
    monkeypatch.setattr(ClassStrategy, "_forecast", lambda *_, **__: {})
    tiny = site_of(tmp_path / "site", suppress=rule, protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 60}")
    with pytest.raises(Blocked, match=r"more than 20.5% of the records would have to be suppressed in all"):
        run(tiny)
    assert tiny.status().state == "blocked"
    [file] = (tiny.site.vault / "refused").iterdir()
    assert json.loads(file.read_text())["suppressed"]["confidence"] > 0  # there, and in no message
    assert len(tiny.charges()) == 1


def test_records_that_stand_out_are_dropped_and_k_still_holds(tmp_path: Path) -> None:
    """With little noise many stand out; what is left has k records in every class, counted by others."""
    tiny = site_of(
        tmp_path / "site",
        protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 12}",
        suppress="{grouping_at_most: 20%, confidence: 90%, at_most: 100%}",
    )
    facts = run(tiny)
    figures = evidence_of(tiny)["audit"]["suppressed"]
    assert figures["confidence"] > 0
    assert facts["rows_in"] - facts["rows_out"] == sum(figures.values())
    assert anonymity.k_anonymity(released_of(tiny), QUASI) >= 4


def test_ranges_do_not_end_at_somebody_who_was_dropped(tmp_path: Path) -> None:
    """Of mondrian: the label is the range of the class's records that are left, counted by hand."""
    tiny = mondrian_site(
        tmp_path / "site",
        protect="{method: k-epsilon, grouping: mondrian, k: 8, epsilon: 10}",
        suppress="{confidence: 90%, at_most: 100%}",
    )
    tiny.fix_key(bytes([1]) * SECRET_BYTES)  # by which noise leaves some records, and not all
    run(tiny)
    tables = {name: table.to_pandas() for name, table in tiny.tables().items()}
    assert len(tables["suppressed"]) < len(tables["masked"])
    ages, before = tables["records"]["age"].astype(int), tables["masked"].groupby("release_pipeline_class")["age"].first()
    narrower = 0
    for group, part in tables["suppressed"].groupby("release_pipeline_class"):
        mine = ages[part["release_pipeline_record"]]
        assert set(part["age"]) == {str(mine.min()) if mine.min() == mine.max() else f"{mine.min()}-{mine.max()}"}
        narrower += set(part["age"]) != {before[group]}
    assert narrower


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> tuple[TinySite, Path]:
    """A site whose k-epsilon release is published."""
    tiny = mondrian_site(tmp_path_factory.mktemp("published") / "site")
    trust_people(tiny, keys)
    approve_policy(tiny.site, "people", key=keys["olga"])
    approve_populations(tiny.site, key=keys["olga"])
    run(tiny)
    for name in ("ben", "cleo"):
        approve_candidate(tiny.site, RELEASE, key=keys[name])
    return tiny, publish(tiny.site, RELEASE, key=keys["robot"])
