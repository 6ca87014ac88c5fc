"""(k,epsilon)-anonymity through the whole pipeline: hierarchies, both groupings, what is refused, and what is published."""

from __future__ import annotations

import csv
import json
import math
import random
import shutil
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import frictionless
import jsonschema
import numpy as np
import pandas as pd
import pytest
from pycanon import anonymity

from release_pipeline.errors import Blocked, DataRefused, GateFailed, OverCap, PolicyInvalid, ReleasePipelineError
from release_pipeline.flow.mask import mask_file
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.publication.dossier import write_dossier
from release_pipeline.flow.publication.publish import publish
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.secret_files import Probe
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.approvals import approve_candidate, approve_policy, approve_populations
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.flow.trust.members import trust_key
from release_pipeline.policy import load_policy
from release_pipeline.privacy.noise import SECRET_BYTES
from release_pipeline.report.public import CARD_SCHEMA
from release_pipeline.stages.compared import read_with
from release_pipeline.stages.strategies import find_strategy
from release_pipeline.stages.strategies.classes import ClassStrategy
from release_pipeline.stages.strategies.strategy import SUPPRESSION
from release_pipeline.store import vault
from tests.integration.people import PEOPLE, RELEASE, trust_people
from tests.integration.sites import ROOT, TinySite, make_site
from tests.integration.test_protocol_crash import BOUNDARIES

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
    return open_release(tiny.site, "people", release, probe=chosen).run().facts


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


def test_no_other_node_is_better(tmp_path: Path) -> None:
    """Every node of the lattice, counted by hand: the chosen one loses least of those that suppress no more than allowed."""
    tiny = site_of(tmp_path / "site", suppress="{grouping_at_most: 20%, at_most: 20%}")
    facts = run(tiny)
    mine = [row for row in records() if row["year"] == "1"]
    depths = (5, 4, 6, 3)

    def suppressed(levels: tuple[int, ...]) -> int:
        classes = Counter(tuple(label_by_hand(n, row[n], at) for n, at in zip(QUASI, levels, strict=True)) for row in mine)
        return sum(count for count in classes.values() if count < 4)

    nodes = [tuple(map(int, node)) for node in np.ndindex(*depths)]
    loss = {
        node: sum(at * 60 // (depth - 1) for at, depth in zip(node, depths, strict=True)) for node in nodes
    }  # exact: 60 / 4, 3, 5, 2
    best = min((node for node in nodes if suppressed(node) <= 0.2 * len(mine)), key=lambda node: (loss[node], node))
    assert [facts["levels"][name] for name in QUASI] == [f"{at} of {depth - 1}" for at, depth in zip(best, depths, strict=True)]


@pytest.mark.parametrize("make", [site_of, mondrian_site])
def test_scales_are_those_of_the_classes(tmp_path: Path, make: Any) -> None:
    """diam / epsilon, rounded up, from the vault's classes with pandas; who is suppressed has no class; one noise per record."""
    tiny = make(tmp_path / "site")
    run(tiny)
    tables = {name: table.to_pandas() for name, table in tiny.tables().items()}
    group = tables["membership"]["release_pipeline_class"]
    shares = {"income": 1.0, "rent": 1.0} if make is site_of else {"income": 1.5, "rent": 0.5}
    for name, step in (("income", 1), ("rent", 0.5)):
        units = (tables["records"][name] / step).round()
        diameters = units[group >= 0].groupby(group[group >= 0]).agg(lambda part: part.max() - part.min())
        scales = tables["statistics"].query("column_name == @name")["scale"].to_numpy()
        assert scales.tolist() == [math.ceil(d / shares[name]) for d in diameters]
    masked = tables["masked"].set_index("release_pipeline_record")
    assert (masked["release_pipeline_class"] == group[masked.index]).all()
    noise = (masked["income"] - tables["records"]["income"][masked.index]).to_numpy()
    inside = (masked["income"] > 0) & (masked["income"] < 1000)
    assert len(set(noise[inside])) > 20


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


def test_nothing_in_the_data_joins_back(tmp_path: Path) -> None:
    """No row number, no class, no index; and the order of rows is none of the source's."""
    tiny = site_of(tmp_path / "site")
    run(tiny)
    released = released_of(tiny)
    assert list(released.columns) == [*QUASI, "income", "rent", "illness"]
    order = tiny.tables()["suppressed"].column("release_pipeline_record").to_pylist()
    assert order != sorted(order)
    assert np.corrcoef(order, range(len(order)))[0, 1] < 0.5


def test_two_releases_are_two_tables(tmp_path: Path) -> None:
    """Not the first one's table again: other people, other classes, other noise; and the cap counts both."""
    rows = records(120, releases=("1",)) + records(90, releases=("2",), seed=7)
    tiny = site_of(tmp_path / "site", rows)
    first, second = run(tiny, "1"), run(tiny, "2")
    assert (first["rows_in"], second["rows_in"]) == (120, 90)
    assert not released_of(tiny, "1").equals(released_of(tiny, "2").head(len(released_of(tiny, "1"))))
    assert second["population_spent"] == "2 of 2 (releases)"
    assert [charge.loss.idp_column for charge in tiny.charges()] == [None, None]
    revised = replace(tiny.flow("2"), id=tiny.flow("2").id.next)
    with pytest.raises(OverCap, match=r"folk has 0 left of 2 \(releases; 2 is spent\)"):
        revised.run()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The data of a release that nobody interrupted."""
    tiny = site_of(tmp_path_factory.mktemp("undisturbed") / "site")
    run(tiny)
    return (tiny.folder() / "data.csv").read_bytes()


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_an_interrupted_release_ends_as_one_that_was_not(tmp_path: Path, boundary: str, undisturbed: bytes) -> None:
    """Stopped at every boundary of the protocol and run again with the same secret: the same data, bit for bit, one charge."""
    tiny = site_of(tmp_path / "site")
    seen: list[str] = []

    def stop(passed: str) -> None:
        seen.append(passed)
        if passed == boundary and seen.count(passed) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tiny, reached=stop)
    run(tiny)
    assert (tiny.folder() / "data.csv").read_bytes() == undisturbed
    assert len(tiny.charges()) == 1


@pytest.mark.parametrize(
    ("column", "entry"), [("zip", "1011"), ("zip", "10115X"), ("born", "1980-02-30"), ("born", "1899-12-31"), ("town", "west")]
)
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


@pytest.mark.parametrize(
    ("age", "words"),
    [
        ("120", "up to 10 records outside the declared domain"),
        ("old", "up to 10 records where something else than a number stands"),
        ("", "up to 10 records without a value"),
        ("nan", "up to 10 records"),
    ],
)
def test_numbers_to_generalise_are_checked_like_others(tmp_path: Path, age: str, words: str) -> None:
    """Outside, no number, missing: counted."""
    rows = records()
    for row in rows[:2]:
        row["age"] = age
    with pytest.raises(DataRefused) as refused:
        run(site_of(tmp_path / "site", rows))
    assert words in " ".join(refused.value.findings)


def test_the_share_for_grouping_is_kept_to_the_record(tmp_path: Path) -> None:
    """Three of thirteen in a small class: 24% lets three go, 23% only two, and then everybody's label is coarser."""
    towns = ["north"] * 10 + ["south"] * 3
    rows = [{**row, "town": town} for row, town in zip(records(13, releases=("1",)), towns, strict=True)]
    only = columns(missing="fail", town="{groups: [north, south]}").splitlines()
    kept = "\n".join(line for line in only if line.strip().split(":")[0] in ("", "person", "town", "income", "illness"))
    found = {}
    for share in ("24%", "23%"):
        tiny = site_of(
            tmp_path / share,
            rows,
            columns=kept,
            drop="[remark, age, zip, born, rent]",
            suppress=f"{{grouping_at_most: {share}, at_most: {share}}}",
            gates="{differencing_below: 0}",
        )
        found[share] = (run(tiny)["levels"]["town"], len(released_of_towns(tiny)))
    assert found == {"24%": ("0 of 1", 10), "23%": ("1 of 1", 13)}


def released_of_towns(tiny: TinySite) -> pd.DataFrame:
    """The data of a site that releases fewer columns."""
    return pd.read_csv(tiny.folder() / "data.csv", dtype=str, keep_default_na=False)


def test_a_missing_number_has_a_label_of_its_own(tmp_path: Path) -> None:
    """Until everything is one: no number stands for it."""
    rows = records()
    for row in rows:
        row.update(zip="10115", born="1980-01-01", town="east")
    for row in rows[:20]:
        row["age"] = ""
    text = columns().replace("why: a human age", "why: a human age, missing: {category: not told}")
    rows[20].update(zip="20095", born="1990-01-01", town="north")  # no column may be constant
    tiny = site_of(tmp_path / "site", rows, columns=text, suppress="{grouping_at_most: 20%, at_most: 20%}")
    assert run(tiny)["levels"]["age"] != "4 of 4"
    ages = Counter(released_of(tiny)["age"])
    assert ages["not told"] == 20
    assert all(age == "not told" or age[0].isdigit() for age in ages)
    assert not {"0", "0-4", "0-9"} & ages.keys()


def test_an_epsilon_cap_refuses_it(tmp_path: Path) -> None:
    """Nothing bounds it, so only a cap by releases lets it through; the message says so."""
    tiny = site_of(tmp_path / "site")
    tiny.write_cap("epsilon: 100, definition: dp, scope: column")
    with pytest.raises(OverCap, match=r"would take infinity.*needs a cap like {releases: 1}"):
        run(tiny)
    assert tiny.charges() == []


def test_a_gate_on_the_relative_error_is_judged_before_the_charge(tmp_path: Path) -> None:
    """Refused for nothing, without the figure; the vault has it, and the epsilon that would do: with that it passes."""
    tiny = site_of(tmp_path / "site", gates="{min_rows: 20, differencing_below: 0, relative_error: {income: 0.5}}")
    with pytest.raises(GateFailed, match=r"the expected relative error of income is over the limit 0\.5"):
        run(tiny)
    assert tiny.charges() == []
    [file] = (tiny.site.vault / "refused").glob("*.json")
    needed = json.loads(file.read_text())["expected"]["income"]["epsilon_needed"]
    for epsilon, passes in ((needed * 1.001, True), (needed * 0.99, False)):
        other = site_of(
            tmp_path / f"{passes}",
            gates="{min_rows: 20, differencing_below: 0, relative_error: {income: 0.5}}",
            suppress="{grouping_at_most: 20%, at_most: 20%}",
            protect=f"{{method: k-epsilon, grouping: ola, k: 4, epsilon: {epsilon:.6f}}}",
        )
        if passes:
            run(other)
        else:
            with pytest.raises(GateFailed):
                run(other)


def test_grouping_that_cannot_succeed_is_refused_for_nothing(tmp_path: Path) -> None:
    """Fewer than k records have the rarer of two coarsest labels: no classes, no charge, and what to do."""
    payload = columns(town="{rows: [[north, coast], [south, coast], [unknown, coast], [east, inland]]}")
    tiny = site_of(
        tmp_path / "site", columns=payload, protect=OLA.replace("k: 4", "k: 60"), gates="{min_rows: 120, differencing_below: 0}"
    )
    with pytest.raises(DataRefused, match="no classes could be made"):
        run(tiny)
    assert tiny.charges() == []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            "{grouping_at_most: 20%, confidence: 50%, confidence_at_most: 0.1%, at_most: 60%}",
            "more than 0.1% of the records would have to be suppressed after the noise",
        ),
        (
            "{grouping_at_most: 20%, confidence: 50%, at_most: 20.5%}",
            "more than 20.5% of the records would have to be suppressed in all",
        ),
    ],
)
def test_more_suppression_than_allowed_blocks_the_release(
    tmp_path: Path, rule: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each budget by itself: before the charge by a forecast; and, where that had let it pass, after the draw."""
    forecast = site_of(tmp_path / "forecast", suppress=rule, protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 60}")
    with pytest.raises(GateFailed, match="suppression to expect"):
        run(forecast)
    assert forecast.charges() == []
    monkeypatch.setattr(ClassStrategy, "_forecast", lambda *_, **__: {})
    tiny = site_of(tmp_path / "site", suppress=rule, protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 60}")
    with pytest.raises(Blocked, match=words):
        run(tiny)
    assert tiny.status().state == "blocked"
    [file] = (tiny.site.vault / "refused").iterdir()
    assert json.loads(file.read_text())["suppressed"]["confidence"] > 0  # there, and in no message
    assert len(tiny.charges()) == 1


def test_the_forecast_is_that_of_the_noise(tmp_path: Path) -> None:
    """The share that it expects is near what eight releases with secrets of their own then drop."""
    protect = "{method: k-epsilon, grouping: ola, k: 4, epsilon: 12}"
    tiny = site_of(tmp_path / "site", protect=protect, suppress="{grouping_at_most: 20%, confidence: 90%, at_most: 100%}")
    flow = tiny.flow()
    flow.ingest()
    flow.validate()
    strategy = find_strategy(flow.policy)
    with flow._workspace() as workspace:
        forecasts = [
            strategy.expect(workspace.read, secret=bytes([i]) * 32, progress=lambda _: None)[SUPPRESSION] for i in range(8)
        ]
        drawn: list[float] = []
        for number in range(8):
            secret = bytes([100 + number]) * 32
            made = strategy.group(workspace.read, secret=secret, context=(), progress=lambda _: None).tables
            read = read_with(made, workspace.read)
            masked = strategy.mask(read, secret=secret, context=(), progress=lambda _: None)
            drawn.append(strategy.suppress(read, masked).share)
    expected = float(np.mean([payload["in_all"] for payload in forecasts]))
    assert abs(expected - float(np.mean(drawn))) < 0.06
    assert 0.1 < expected < 0.9


def test_scales_of_many_classes_are_stored_column_by_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As each is made, and read by themselves: the same candidate comes of it."""
    run(whole := site_of(tmp_path / "whole"))
    monkeypatch.setattr(vault, "LARGE", 1)
    run(columns := site_of(tmp_path / "columns"))
    stored = {name.partition("_column_")[0] for name in columns.tables() if "_column_" in name}
    assert stored >= {"membership", "statistics"}
    assert columns.folder().joinpath("data.csv").read_bytes() == whole.folder().joinpath("data.csv").read_bytes()


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
    tiny.fix_key(bytes([4]) * SECRET_BYTES)  # by which noise leaves some records, and not all
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


@pytest.mark.parametrize("table", ["membership", "labels", "statistics"])
@pytest.mark.parametrize("stage", ["mask", "suppress", "audit"])
def test_tables_of_the_vault_that_somebody_changed_are_found_out(tmp_path: Path, table: str, stage: str) -> None:
    """Whatever is read by a stage is compared with its note first, the figures for reviewers included."""
    tiny = site_of(tmp_path / "site")
    flow = open_release(tiny.site, "people", "1", probe=Probe(new_secret=lambda: SECRET))
    flow.ingest()
    flow.validate()
    flow.microaggregate()
    for earlier in ("mask", "suppress")[: ("mask", "suppress", "audit").index(stage)]:
        getattr(flow, earlier)()
    with duckdb.connect(str(tiny.site.vault / "folk.duckdb")) as vault:
        [(workspace,)] = vault.execute(
            "SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_name = ?", [table]
        ).fetchall()
        change = {"membership": "release_pipeline_class = 0", "labels": "town = 'inland'", "statistics": "scale = 1"}[table]
        vault.execute(f'UPDATE "{workspace}"."{table}" SET {change}')  # noqa: S608
    with pytest.raises(Blocked, match=f"the table {table} in the vault is not what was written"):
        getattr(flow, stage)()


def test_hierarchies_get_files_of_their_own(tmp_path: Path) -> None:
    """Whatever the columns are called."""
    from release_pipeline.flow.publication.public_view import _list_hierarchies

    names = ("a b", "a.b", "a-b-2", "é", "ü")
    more = "".join(f'\n  "{name}": {{role: quasi, do: generalise, hierarchy: {{groups: [x, y]}}}}' for name in names)
    tiny = site_of(tmp_path / "site", columns=columns(more=more))
    files = [file for file, _ in _list_hierarchies(load_policy(tiny.home / "policies" / "people.yaml"))]
    assert len(set(files)) == len(files) == 8


def test_nobody_left_blocks(tmp_path: Path) -> None:
    """Nearly no noise: everybody stands out."""
    protect = "{method: k-epsilon, grouping: ola, k: 30, epsilon: 900000}"
    tiny = site_of(
        tmp_path / "site", protect=protect, suppress="{grouping_at_most: 20%, confidence: 50%, at_most: 100%}", gates=""
    )
    with pytest.raises(Blocked, match="every record would have to be suppressed"):
        run(tiny)


def test_a_hierarchy_in_a_file_is_part_of_the_policy(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """Its rows are in the hash: approved with it, refused when they change, and known when the file is long gone."""
    text = columns(town="{csv: lists/town.csv}")
    tiny = site_of(tmp_path / "site", columns=text)
    (tiny.home / "policies" / "lists").mkdir()
    file = tiny.home / "policies" / "lists" / "town.csv"
    good = "level0,level1,level2\nnorth,coast,*\nsouth,coast,*\nunknown,coast,*\neast,inland,*\n"
    file.write_text(good)
    inline = site_of(tmp_path / "inline")
    assert tiny.site.policy("people").canonical_hash() == inline.site.policy("people").canonical_hash()
    trust_people(tiny, keys)
    approve_policy(tiny.site, "people", key=keys["olga"])
    approve_populations(tiny.site, key=keys["olga"])
    file.write_text(good.replace("south,coast", "south,inland"))
    with pytest.raises(ReleasePipelineError, match="approv"):
        run(tiny)
    file.write_text(good)
    run(tiny)
    shutil.rmtree(file.parent)
    for name in ("ben", "cleo"):
        approve_candidate(tiny.site, RELEASE, key=keys[name])
    assert (publish(tiny.site, RELEASE, key=keys["robot"]) / "hierarchy-town.csv").read_text() == good
    with pytest.raises(PolicyInvalid) as refused:
        tiny.site.policy("people")
    [problem] = refused.value.problems
    assert "columns.town.hierarchy.csv: there is no such file (" in problem


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


def test_package_and_dossier_verify(published: tuple[TinySite, Path], keys: dict[str, PrivateKey], tmp_path: Path) -> None:
    """Nothing fails, offline; a hierarchy that was changed does."""
    tiny, package = published
    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    for path in (package, dossier):
        assert not [finding for finding in verify(path, tiny.site.officer or "") if finding.level == "FAIL"]
    with zipfile.ZipFile(dossier) as archive:
        assert "candidate/report.html" in archive.namelist()
        listed = {row["column"]: row for row in csv.DictReader(archive.read("columns.csv").decode().splitlines())}
    assert listed["zip"]["released"] == "yes"
    assert "5 digits" in listed["zip"]["values"]
    copy = shutil.copytree(package, tmp_path / "1" / "r1")
    (copy / "hierarchy-town.csv").write_text("level0,level1\n")
    assert [finding for finding in verify(copy, tiny.site.officer or "") if finding.level == "FAIL"]


def test_card_says_what_it_is(published: tuple[TinySite, Path]) -> None:
    """Within a class, not differential privacy, k-anonymity on the generalised columns, no sum; no internal figure."""
    _, package = published
    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.validate(card, CARD_SCHEMA)
    assert card["claim"]["definition"]["name"] == "k-epsilon"
    assert (card["k"]["value"], card["k"]["is_k_anonymity"], card["series"]["epsilon"]) == (4, True, None)
    assert card["claim"]["wider"][0]["bound"].startswith("not bounded")
    for file in ("privacy-card.html", "RELEASE_NOTE.md"):
        text = " ".join((package / file).read_text().split())
        assert "not differential privacy" in text
        assert "share one value" not in text  # that is what clusters do
        assert "a factor of at most e^(2 epsilon) between two records of a class, and not of e^epsilon" in text
        for figure in ("linking", "relative error"):
            assert figure not in text
    shown = {column["name"]: column for column in card["columns"]}
    assert shown["zip"]["levels"] == ["5 digits", "3 digits", "1 digits", "*"]
    assert shown["zip"]["level"] is None


def test_data_package_describes_data_and_hierarchies(published: tuple[TinySite, Path]) -> None:
    """Frictionless validates it; the lists of what the labels stand for are resources of it."""
    _, package = published
    described = frictionless.Package(str(package / "datapackage.json"))
    assert {"hierarchy-born", "hierarchy-town"} <= set(described.resource_names)
    assert "hierarchy-age" not in described.resource_names  # mondrian's ranges are in no list
    assert described.validate().valid


def test_no_cell_of_what_is_dropped_leaves(published: tuple[TinySite, Path]) -> None:
    """Neither the remark nor a person is anywhere in the package."""
    _, package = published
    for file in package.iterdir():
        content = file.read_bytes()
        assert CANARY.encode() not in content
        assert b"p0001" not in content


def test_published_data_are_looked_at_once_more(
    tmp_path: Path, keys: dict[str, PrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody has switched suppression off where candidates are made: the groups are counted again before they go out."""
    from release_pipeline.stages.strategies import classes

    tiny = site_of(
        tmp_path / "site",
        protect="{method: k-epsilon, grouping: ola, k: 4, epsilon: 12}",
        suppress="{grouping_at_most: 20%, confidence: 90%, at_most: 100%}",
    )
    tiny.fix_key(bytes([4]) * SECRET_BYTES)  # by which noise leaves small classes
    trust_people(tiny, keys)
    approve_policy(tiny.site, "people", key=keys["olga"])
    approve_populations(tiny.site, key=keys["olga"])
    with monkeypatch.context() as patch:
        patch.setattr(classes, "find_small_classes", lambda group, kept, **_: np.zeros_like(kept))
        run(tiny)
    for name in ("ben", "cleo"):
        approve_candidate(tiny.site, RELEASE, key=keys[name])
    with pytest.raises(Blocked, match="There are groups of released quasi-identifiers below 4"):
        publish(tiny.site, RELEASE, key=keys["robot"])


def test_mask_applies_the_method_alone(tmp_path: Path) -> None:
    """Classes of k, noise, no confidence, stamped; and the same refusals."""
    tiny = site_of(tmp_path / "site")
    policy = load_policy(tiny.home / "policies" / "people.yaml")
    masked = mask_file(policy, tiny.home / "people.csv", tmp_path / "out.csv", release="1")
    table = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    assert anonymity.k_anonymity(table, QUASI) >= 4
    assert len(table) == masked.records <= 120
    assert masked.evidence()["stamp"] == "not a release"
    assert masked.columns["income"]["classes"] > 1


def test_adult_to_a_verified_package(tmp_path: Path, reference_data: Path, keys: dict[str, PrivateKey]) -> None:
    """The policy that ships, on the data that it names: levels and k counted by others, and every step to the package."""
    name = "adult-k-epsilon"
    home = tmp_path / "site"
    (home / "policies").mkdir(parents=True)
    shutil.copyfile(ROOT / "policies" / f"{name}.yaml", home / "policies" / f"{name}.yaml")
    shutil.copyfile(ROOT / "populations.yaml", home / "populations.yaml")
    site = Site(home, {"RELEASE_PIPELINE_REFERENCE_DATA": str(reference_data)})
    for person, role in PEOPLE.items():
        trust_key(site, person, role, keys[person].public, key=keys["olga"])
    approve_policy(site, name, key=keys["olga"])
    approve_populations(site, key=keys["olga"])
    flow = open_release(site, name, None)
    facts = flow.run().facts
    assert facts["levels"] == {"age": "1 of 4", "sex": "0 of 1", "race": "0 of 1", "marital_status": "0 of 2"}
    for person in ("ben", "cleo"):
        approve_candidate(site, flow.id, key=keys[person])
    package = publish(site, flow.id, key=keys["robot"])
    assert not [finding for finding in verify(package, site.officer or "") if finding.level == "FAIL"]
    released = pd.read_parquet(package / "data.parquet")
    quasi = list(facts["levels"])
    assert anonymity.k_anonymity(released, quasi) >= 10
    adult = pd.read_csv(reference_data / "adult.csv")
    ages = (adult["age"] // 5 * 5).map(lambda age: f"{age}-{age + 4}")
    sizes = adult.assign(age=ages).groupby(quasi)["income"].transform("size")
    assert 0 <= (sizes >= 10).sum() - len(released) <= 0.02 * len(adult)  # who stood out is gone too
    assert facts["rows_in"] == len(adult) == 32_561
