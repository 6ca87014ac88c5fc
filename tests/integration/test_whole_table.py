"""dp-table through the whole pipeline: policy, noisy counts, synthetic rows, package, and what an analyst gets from it."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

import frictionless
import jsonschema
import numpy as np
import pandas as pd
import pytest

from release_pipeline.analyst import Moments, NoHonestAnswer, read_release
from release_pipeline.analyst.rerun import find_design
from release_pipeline.analyst.rerun import find_entries as find_released
from release_pipeline.errors import InvalidArgument, PolicyInvalid
from release_pipeline.formats.package import COUNTS_FILE, PAIRS_FILE
from release_pipeline.masking.whole_table import BLOCKS, CELLS, PAIRS, read_measured
from release_pipeline.mechanisms.noise import SECRET_BYTES
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from release_pipeline.policy.families.whole_table import WholeTableFamily, declare_columns
from release_pipeline.policy.file.options import WholeTableOptions
from release_pipeline.policy.plans.plan import describe_plan, make_plan
from release_pipeline.publish.dossier import write_dossier
from release_pipeline.publish.public import CARD_SCHEMA
from release_pipeline.publish.publish import retract
from release_pipeline.publish.verification import verify
from release_pipeline.rows.columns import find_entries
from release_pipeline.store.files import Probe
from release_pipeline.trust.keys import PrivateKey
from tests.integration.people import RELEASE, copy_site
from tests.integration.publishing import failures_of, make_trusted_site, publish_release, read_zip
from tests.integration.sites import Row, TinySite, make_site, refusal
from tests.leaks import find_canaries, read_blobs

SECRET = b"w" * SECRET_BYTES
ROWS = 600
SURE = 1 - 1e-9
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: synthesise, values: [north, south, east]}
  sex:    {role: quasi, do: synthesise, values: [0, 1], codes: {8: refused, 9: refused}}
  income: {role: confidential, do: synthesise, domain: [0, 1000], grid: 1, outside: fail, missing: keep, why: known}
  rent:   {role: confidential, do: synthesise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
PARTS = {
    "columns": COLUMNS,
    "protect": "{method: dp-table, epsilon: 10}",
    "gates": "{min_rows: 500}",
    "audit": "{groups: [town], predict: {sex: {equals: 1}}}",
}
CAP = "epsilon: 25, definition: dp, scope: table"
GIVEN = (
    ", given that the records passed its gates (at most 1% of records clamped in rent; between two releases, 0 or at least "
    "10 people join, and 0 or at least 10 leave)"
)


def make_people(count: int = ROWS) -> list[Row]:
    """Incomes go with towns and rents with incomes; some people say nothing."""
    numbers = random.Random(4)  # noqa: S311
    rows: list[Row] = []
    for release in ("1", "2"):
        for number in range(count):
            town = numbers.choice(["north", "north", "south", "east"])
            income = min(max(round(numbers.gauss(700 if town == "north" else 300, 120)), 0), 1000)
            rows.append(
                {
                    "person": f"p{number:04}",
                    "year": release,
                    "town": town,
                    "sex": numbers.choice(["0", "1", "1", "8" if number % 9 == 0 else "1"]),
                    "income": "" if number % 11 == 0 else str(income),
                    "rent": str(round(income / 12) + 0.5 * (number % 2)),
                    "name": f"name{number}",
                    "remark": f"remark{number}",
                }
            )
    return rows


def site_of(home: Path, **parts: str) -> TinySite:
    """A site with a policy that makes every row anew."""
    tiny = make_site(home, rows=make_people(), **{"cap": CAP, **PARTS, **parts})
    tiny.fix_key(SECRET)  # the key of the noise has the keyed hash of the records
    return tiny


def run(tiny: TinySite, release: str = "1") -> dict[str, object]:
    """The facts of the candidate, its noise drawn with a secret that the test knows."""
    return run_release(open_release(tiny.site, "people", release, probe=Probe(new_secret=lambda: SECRET))).facts


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """A site after one release, what was expected of it simulated with a key that the test knows."""
    tiny = site_of(tmp_path_factory.mktemp("whole") / "site")
    run(tiny)
    return tiny


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, keys: Mapping[str, PrivateKey]) -> tuple[TinySite, Path]:
    """A site and the package of its first release."""
    rows = make_people()
    rows[7] |= {"income": "987", "remark": "canary-remark", "name": "name0007"}
    tiny = make_trusted_site(tmp_path_factory.mktemp("public") / "site", keys, rows=rows, cap=CAP, **PARTS)
    return tiny, publish_release(tiny, keys)


def test_rows_follow_from_the_published_counts(made: TinySite) -> None:
    """The counts are those of the records, with noise that loses at most what is charged; rows are made of them and of nothing
    else: the same counts and secret give the same rows, whatever became of the records."""
    [charge] = made.charges()
    assert (charge.loss.dp_table, charge.loss.dp_column, charge.loss.zcdp_table) == (10 * 10**9, 10 * 10**9, 50 * 10**9)
    tables, policy = made.tables(), made.site.policy("people")
    family = WholeTableFamily(WholeTableOptions)
    design = family.declare(policy, ROWS)
    assert design.loss <= 10
    names = ["income", "rent", "sex", "town"]
    measured = read_measured(names, design, tables[CELLS], tables.get(BLOCKS, tables[PAIRS]))
    counts, pairs = pd.read_csv(made.folder() / COUNTS_FILE), pd.read_csv(made.folder() / PAIRS_FILE)
    entries = {name: find_entries(policy.columns[name], tables["records"].column(name)) for name in names}  # type: ignore[arg-type]
    for place, name in enumerate(names):
        true = np.bincount(measured.cells[place].find(entries[name]), minlength=measured.cells[place].count)
        published = counts[counts["column"] == name]["count"].to_numpy()
        assert (published == measured.margins[place]).all()
        assert 0 < np.abs(published - true).max() < 12 * design.margins.spread
    for (one, other), noisy in measured.pairs.items():
        group = [measured.groups[place][measured.cells[place].find(entries[names[place]])] for place in (one, other)]
        true = np.bincount(group[0] * noisy.shape[1] + group[1], minlength=noisy.size)
        mine = pairs[(pairs["one"] == names[one]) & (pairs["other"] == names[other])]["count"].to_numpy()
        assert (mine == noisy.ravel()).all()
        assert 0 < np.abs(mine - true).max() < 12 * design.pairs[one, other].spread


def test_too_little_is_refused_before_the_charge(tmp_path: Path) -> None:
    """By public facts, with what would be enough; the plan says it before."""
    tiny = site_of(tmp_path, gates="{min_rows: 300}")
    plan = " ".join(" ".join(describe_plan(make_plan(tiny.site.policy("people"), rows=600))).split())
    assert "epsilon 10 for everything in this package (DP): all that a reader sees, categories included" in plan
    assert "every pair of columns (6)" in plan
    tiny.write_policy(**{**PARTS, "gates": ""})
    tiny.write_rows(make_people(60))
    with pytest.raises(InvalidArgument, match=r"60 records are too few for dp-table.*about \d+ records or about epsilon \d+"):
        run_release(tiny.flow())
    assert not tiny.charges()
    tiny.write_policy(**{**PARTS, "gates": "{min_rows: 50}"})
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert "min_rows is 50, and that is too little" in str(refused.value.problems)


KEEP = "{role: quasi, do: keep, values: [north, south, east], why: needed}"


def test_what_is_expected_has_noise_of_its_own_each_time(made: TinySite) -> None:
    """Simulated releases differ as releases do, so that the range that is told has room, and what came lies in it."""
    evidence = json.loads((made.folder() / "evidence.json").read_text())
    for name, expected in evidence["columns"].items():
        assert 2 * expected["error_low"] < expected["error_high"]
        assert expected["error_low"] < evidence["audit"]["error"][name] < expected["error_high"]


ASKED = [
    ({"protect": "{method: dp-table, epsilon: 10, k: 5}"}, "makes no clusters"),
    ({"protect": "{method: dp-table, epsilon: 10, delta: 0.001}"}, "only definition: zcdp has a delta"),
    (
        {"columns": COLUMNS.replace("{role: quasi, do: synthesise, values: [north, south, east]}", KEEP)},
        "'town' would be released as it is",
    ),
    (
        {
            "columns": COLUMNS.replace(
                "role: confidential, do: synthesise, domain: [0, 100]", "role: weight, do: synthesise, domain: [0, 100]"
            )
        },
        "no weight belongs to one",
    ),
]


@pytest.mark.parametrize(("parts", "words"), ASKED)
def test_what_a_policy_may_not_ask_for_is_told_in_words(tmp_path: Path, parts: Mapping[str, str], words: str) -> None:
    tiny = site_of(tmp_path, **parts)
    assert words in refusal(lambda: load_policy(tiny.home / "policies" / "people.yaml"))


def test_a_package_is_one_claim_and_answers_from_its_counts(package: tuple[TinySite, Path]) -> None:
    """Described to programs, verified; answers hold for the confidential table; links are declined."""
    tiny, folder = package
    assert not failures_of(verify(folder, [str(tiny.site.officer)]))
    described = frictionless.Package(str(folder / "datapackage.json"))
    assert {"data.counts", "data.pairs"} <= set(described.resource_names)
    assert frictionless.validate(str(folder / "datapackage.json")).valid
    card = json.loads((folder / "privacy-card.json").read_text())
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    assert card["headline"] == f"epsilon 10 for everything in this package{GIVEN}"
    assert card["rows"]["kind"] == "synthetic rows: no row was copied from a record"
    assert card["claim"]["scope"]["name"] == "table"
    assert {column["done"] for column in card["columns"]} == {"synthesise", "missing"}
    assert not any("table as a whole" in words for words in card["claim"]["not_protected"])
    release = read_release(folder)
    records = tiny.tables()["records"].to_pandas()
    rent, valued = records["rent"].to_numpy(), records[records["income"] <= 1000]
    for interval, truth in (
        (release.share("rent", 0, 25, level=SURE), (rent <= 25).mean()),
        (release.quantile("rent", 0.5, level=SURE), np.median(rent)),
        (release.mean("rent", level=SURE), rent.mean()),
        (release.mean("income", level=SURE), valued["income"].mean()),
        (release.missing("income", level=SURE), (records["income"] > 1000).mean()),
        (release.share_of("town", "north", level=SURE), (records["town"] == "north").mean()),
        (release.share_of("sex", 1, level=SURE), (records["sex"] == 1).mean()),
    ):
        assert interval.low <= truth <= interval.high
        assert interval.low < interval.high
    for cell in release.pair("town", "sex").cells(level=SURE):
        if cell.one in ("north", "south", "east") and cell.other in ("0", "1"):
            truth = ((records["town"] == cell.one) & (records["sex"] == int(cell.other))).sum()
            assert cell.count.low <= truth <= cell.count.high
    for town, mean in release.pair("town", "income").means(level=SURE).items():
        truth = valued[valued["town"] == town]["income"].mean()
        assert mean.low <= truth <= mean.high
    assert release.noise_of("rent").kind == "counts"
    assert "(share, share_of, quantile, mean)" in " ".join(release.explain())
    with pytest.raises(NoHonestAnswer, match="no mean"):
        release.pair("income", "town").means()
    with pytest.raises(InvalidArgument, match="no record can have this value"):
        release.share_of("town", "west")
    assert not find_canaries(read_blobs(folder), ["canary-remark", "name0007"])


REBUILT = {
    "protect": "{method: dp-table, definition: zcdp, epsilon: 8, delta: 0.000001}",
    "cap": "epsilon: 60, delta: 0.000001, definition: zcdp, scope: table",
    "person": "{column: person, records_per_release: 2}",
}


@pytest.mark.slow
def test_the_kit_rebuilds_the_design_and_runs_it_again(tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """From the package alone: with atoms, codes, dates, and several records per person. Rows are read back
    as the entries that they were written from."""
    columns = COLUMNS.replace(
        "domain: [0, 100], grid: 0.5, outside: clamp", "domain: [2020-01-01, 2020-12-31], grid: 1 day, outside: fail"
    ).replace("missing: keep, why: known", "missing: keep, atoms: [0, 500], codes: {1001: refused}, why: known")
    rows = make_people()
    for place, row in enumerate(rows):
        row["rent"] = (date(2020, 1, 1) + timedelta(days=(place * 7) % 200)).isoformat()
        row["income"] = "1001" if place % 17 == 0 else row["income"]
    tiny = make_trusted_site(tmp_path / "site", keys, rows=rows, **{**PARTS, **REBUILT, "columns": columns})
    release = read_release(publish_release(tiny, keys))
    policy = tiny.site.policy("people")
    design = WholeTableFamily(WholeTableOptions).declare(policy, ROWS)
    design = dataclasses.replace(design, in_blocks=BLOCKS in tiny.tables())
    assert find_design(release.facts, release.counts, release.pairs) == design
    assert (design.columns[0].atoms, design.columns[0].labels) == ((0, 500), 2)
    assert design.columns[1].centre == 182
    masked = tiny.tables()["masked"]
    found = find_released(release.facts, release.data, release.counts)
    for name, own in zip(declare_columns(policy.columns), found, strict=True):
        made = find_entries(policy.columns[name], masked.column(name))  # type: ignore[arg-type]
        assert (np.bincount(own, minlength=1100) == np.bincount(made, minlength=1100)).all()
    again = release.rerun(times=10, seed=3)
    when = again.mean("rent")
    assert isinstance(when, Moments)
    assert when.low <= date(2020, 4, 9) <= when.high
    towns = again.means("income", by="town")
    assert towns["north"].low > towns["south"].estimate
    words = " ".join(release.explain())
    assert "(rerun, and of it mean and means)" in words
    assert "Rubin's rules: not offered" in words


def test_dossier_and_retraction(package: tuple[TinySite, Path], tmp_path: Path, keys: Mapping[str, PrivateKey]) -> None:
    """The dossier has no counts, and a retraction takes them away."""
    tiny, folder = package
    dossier = write_dossier(tiny.site, RELEASE, tmp_path / "dossier.zip")
    assert not failures_of(verify(dossier, [str(tiny.site.officer)]))
    assert not any("counts" in name or "pairs" in name for name in read_zip(dossier))
    other = copy_site(tiny.home, tmp_path / "site")
    retract(other.site, RELEASE, key=keys["olga"], why="a test")
    for file in (COUNTS_FILE, PAIRS_FILE):
        assert (folder / file).exists()
        assert not (other.site.package(str(RELEASE)) / file).exists()
