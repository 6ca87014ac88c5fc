"""Recomputed columns, from the policy to the analyst, and ties that what is published may break."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pyreadstat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from release_pipeline.analyst import read_release
from release_pipeline.cli import main
from release_pipeline.errors import PolicyInvalid
from release_pipeline.flow.publication.verification import verify
from release_pipeline.flow.tables import read_table
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.policy import load_policy
from release_pipeline.policy.derivations import KINDS as DERIVATIONS
from release_pipeline.policy.derivations import Between, Derivation, Derived, Limit
from release_pipeline.policy.periods import KINDS as PERIODS
from release_pipeline.policy.ties import find_ties
from release_pipeline.policy.words import not_covered_words
from release_pipeline.privacy.dates import UNITS, Unit
from release_pipeline.report.public import CARD_SCHEMA
from release_pipeline.stages.column_table import load_table
from release_pipeline.stages.measures.ties import count_units
from release_pipeline.stages.package import check_released, spell_out
from release_pipeline.stages.recompute import make_column, recompute
from release_pipeline.store.derived import derive_columns
from release_pipeline.store.raw import create_macros
from tests.integration.publishing import make_trusted_site, publish_release
from tests.integration.sites import TinySite, make_rows, make_site

ADAPTER: TypeAdapter[Any] = TypeAdapter(Derivation)
DERIVE = """
  total: {sum: [income, rent]}
  back:  {difference: [total, rent]}
  level: {bands: back, at: [200, 600.5], labels: [low, middle, high]}
  place: {merge: town, into: {coast: [north], inland: [south]}, other: elsewhere}
  odd:   {sum: [income, rent]}"""
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  total:  {role: confidential, do: recompute, label: Income and rent, why: asked for}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  place:  {role: quasi, do: recompute}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  level:  {role: confidential, do: recompute, labels: {low: up to 200, high: 600.5 and more}}
  back:   {role: confidential, do: recompute}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}
  odd:    {role: confidential, do: noise, domain: [0, 1100], grid: 0.5, outside: clamp, why: masked on its own}"""
TOTAL = "{role: confidential, do: recompute, label: Income and rent, why: asked for}"
PARTS: dict[str, Any] = {
    "derive": DERIVE,
    "columns": COLUMNS,
    "drop": "[name, sex]",
    "protect": "{method: laplace, epsilon: 6, clamp: no, consistency: none}",
    "publish": "{formats: [parquet, csv, sav]}",
}
NAMES = ["total", "town", "place", "income", "level", "back", "rent", "odd"]
CAP = "epsilon: 20, definition: dp, scope: column"


def policy_of(home: Path, **parts: str) -> Any:
    """A policy like that of the release, read from its file."""
    tiny = make_site(home, **{**PARTS, **parts})
    return load_policy(tiny.home / "policies" / "people.yaml")


def home_of(package: Path) -> Path:
    """The site of a package."""
    return next(folder for folder in package.parents if folder.name == "site")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> Path:
    """Of 100 people."""
    home = tmp_path_factory.mktemp("recomputed") / "site"
    tiny = make_trusted_site(home, keys, rows=make_rows(100), cap=CAP, **PARTS)
    return publish_release(tiny, keys)


@pytest.mark.slow
def test_what_is_published_is_made_of_what_is_published(package: Path) -> None:
    """Row by row, in the order of the policy, in both formats; of the masked columns alone anything is spent."""
    rows = pd.read_csv(package / "data.csv")
    assert rows.columns.tolist() == NAMES
    assert (rows["total"] == rows["income"] + rows["rent"]).all()
    assert (rows["back"] == rows["income"]).all()
    assert rows["level"].tolist() == ["low" if i < 200 else "middle" if i < 600.5 else "high" for i in rows["income"]]
    assert rows["place"].tolist() == rows["town"].map({"north": "coast", "south": "inland", "east": "elsewhere"}).tolist()
    assert pyarrow.parquet.read_table(package / "data.parquet").to_pandas()["total"].tolist() == rows["total"].tolist()
    card = json.loads((package / "privacy-card.json").read_text())
    jsonschema.Draft202012Validator(CARD_SCHEMA).validate(card)
    assert [part["column"] for part in card["claim"]["epsilon"]["columns"]] == ["income", "rent", "odd"]
    assert card["claim"]["epsilon"]["total"] == "6"
    columns = {column["name"]: column for column in card["columns"]}
    assert columns["total"]["made"] == {"by": "sum", "of": ["income", "rent"], "words": "income + rent"}
    assert [name for name, column in columns.items() if column["made"]] == ["total", "place", "level", "back"]
    assert columns["level"]["values"] == ["low", "middle", "high"]
    assert columns["total"]["noise"] == "that of income, rent"
    assert columns["place"]["noise"] is None
    assert columns["total"]["why"] == "asked for"
    assert "made of what is published: income + rent (sum of income, rent)" in (package / "privacy-card.html").read_text()
    assert "total, place, level, back: made of the other published columns" in (package / "RELEASE_NOTE.md").read_text()
    fields = json.loads((package / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    assert [field["name"] for field in fields] == NAMES
    assert "asked for; made of what is published, row by row, and of nothing else: income + rent" in fields[0]["description"]


@pytest.mark.slow
def test_their_labels_are_where_others_are(package: Path) -> None:
    """In card, page, description, Parquet and SPSS, whose cells are those of the CSV."""
    card = json.loads((package / "privacy-card.json").read_text())
    columns = {column["name"]: column for column in card["columns"]}
    assert columns["total"]["label"] == "Income and rent"
    assert "600.5 and more" in (package / "privacy-card.html").read_text()
    fields = json.loads((package / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    assert fields[0]["title"] == "Income and rent"
    schema = pyarrow.parquet.read_schema(package / "data.parquet")
    assert json.loads(schema.field("level").metadata[b"labels"]) == {"high": "600.5 and more", "low": "up to 200"}
    cells, known = pyreadstat.read_sav(package / "data.sav")
    assert known.column_names_to_labels["total"] == "Income and rent"
    assert known.variable_value_labels["level"] == {"low": "up to 200", "high": "600.5 and more"}
    assert cells[NAMES].equals(pd.read_csv(package / "data.csv")[NAMES].astype(cells[NAMES].dtypes))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("labels: {low:", "labels: {lowest:", "a label of lowest, which no released record may have"),
        ("label: Income and rent", "labels: {5: five}", "it has no listed entries"),
    ],
)
def test_labels_of_what_is_not_made_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in COLUMNS
    with pytest.raises(PolicyInvalid) as refused:
        policy_of(tmp_path / "site", columns=COLUMNS.replace(old, new))
    assert words in " ".join(map(str, refused.value.faults))


def test_stata_has_no_labels_of_texts(tmp_path: Path) -> None:
    with pytest.raises(PolicyInvalid) as refused:
        policy_of(tmp_path / "site", publish="{formats: [csv, dta]}")
    assert "labels whole numbers alone" in " ".join(map(str, refused.value.faults))


@pytest.mark.slow
def test_the_method_never_sees_them(package: Path) -> None:
    """No table of the vault has one; the reviewers see errors and ties, and nothing of it is public."""
    tiny = TinySite(home_of(package))
    made = {"total", "place", "level", "back"}
    assert all(not made & set(table.column_names) for table in tiny.tables().values())
    audit = json.loads((tiny.folder() / "evidence.json").read_text())["audit"]
    source = pd.read_csv(tiny.home / "people.csv")
    source = source[source["year"] == 1]
    rows = pd.read_csv(package / "data.csv")
    total = source["income"] + source["rent"]
    assert audit["recomputed"]["total"]["original"] == pytest.approx(total.mean(), rel=1e-5)
    assert audit["recomputed"]["total"]["released"] == pytest.approx(rows["total"].mean(), rel=1e-5)
    assert 300 < audit["recomputed"]["total"]["absolute_error"] < 800  # of Laplace noise of scale 500, and of 50
    assert 0 < audit["recomputed"]["level"]["changed"] < 1
    assert audit["recomputed"]["place"]["changed"] == 0
    assert [tie["name"] for tie in audit["ties"]] == ["odd"]
    broken = (rows["odd"] - rows["income"] - rows["rent"]).abs() > 0.25
    assert {tie["name"]: (tie["before"], tie["after"]) for tie in audit["ties"]} == {"odd": (0, broken.sum())}
    page = (tiny.folder() / "report.html").read_text()
    assert f"{broken.sum()} of 100 published records break it; 0 of the same records did as they came." in page
    assert not [finding for finding in [*verify(home_of(package), deep=True), *verify(package)] if finding.level == "FAIL"]


@pytest.mark.slow
def test_a_changed_cell_is_found_before_it_is_published(package: Path) -> None:
    """Of a recomputed column, in both formats."""
    policy = load_policy(home_of(package) / "policies" / "people.yaml")
    for form in ("csv", "parquet"):
        table = load_table(read_table(package / f"data.{form}", format=form, policy=policy))
        assert not list(check_released(table, policy, rows=100))
        for name, other in (("total", table.column("back")), ("level", table.column("place"))):
            changed = table.set_column(table.column_names.index(name), name, other)
            assert f"Column {name} is not what the columns make that it is made of." in list(
                check_released(changed, policy, rows=100)
            )


@pytest.mark.slow
def test_the_kit_puts_means_together_of_those_of_the_parts(package: Path) -> None:
    """Each at the level that makes all of them hold; what has no law is declined."""
    release = read_release(package)
    income, rent, total = release.mean("income", level=0.975), release.mean("rent", level=0.975), release.mean("total")
    assert total.estimate == pytest.approx(income.estimate + rent.estimate)
    assert (total.low, total.high) == pytest.approx((income.low + rent.low, income.high + rent.high))
    assert (total.level, total.kind) == (0.95, "bound")
    assert release.mean("back").width > total.width  # of a difference of a sum: each part is asked at a higher level
    with pytest.raises(Exception, match="has no law of its own"):
        release.noise_of("total")
    for ask in (
        lambda: release.mean("level"),
        lambda: release.slope("odd", ["total"]),
        lambda: release.correlation("odd", "total"),
    ):
        with pytest.raises(Exception, match=r"has no law of its own|does not follow from their means"):
            ask()
    assert "total, level, back: made of the other columns." in " ".join(release.explain())


@pytest.mark.slow
def test_other_ways_give_the_same_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`mask` and `check`; a policy is its own whether or not a column is made anew."""
    tiny = make_site(tmp_path / "site", cap=CAP, **PARTS)
    file = tiny.home / "policies" / "people.yaml"
    output = tmp_path / "o.csv"
    assert main(["mask", str(tiny.home / "people.csv"), "--policy", str(file), "--release", "1", "-o", str(output),
                 "--unaccounted"]) == 0  # fmt: skip
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert list(rows[0]) == NAMES
    assert all(float(row["total"]) == float(row["income"]) + float(row["rent"]) for row in rows)
    capsys.readouterr()
    assert main(["check", str(file)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "total confidential recompute made of what is published, after the masking; asked for" in said
    assert "warning odd: odd, income, rent are masked each on its own" in said
    assert "With do: recompute odd is made of what is published: it keeps the rule, and costs nothing." in said
    assert "warning order: income, odd are masked each on its own" in said
    assert "warning adds" not in said
    assert main(["check", str(file), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert len(plan["warnings"]) == 2
    assert plan["recomputed"] == ["total", "place", "level", "back"]
    assert [column["name"] for column in plan["columns"]] == ["income", "rent", "odd"]


@pytest.mark.parametrize(
    ("protect", "changes", "joined"),
    [
        ("{method: dp-um, epsilon: 1, k: 5}", (), "total, level, back"),  # a list of sums tells which parts are in one row
        ("{method: laplace, epsilon: 1}", (), ""),  # whole records are masked
        ("{method: laplace, epsilon: 1}", (("{limit: rent, top: 5}", "{sum: [rent, sex]}"),), "least"),  # and kept ones are not
        ("{method: dp-um, epsilon: 1, k: 5}", (("back:  {difference: [total, rent]}", "back: {limit: rent, top: 5}"),), "total"),
    ],
)
def test_what_is_made_of_several_columns_is_not_covered_by_a_claim_for_lists(
    tmp_path: Path, protect: str, changes: tuple[tuple[str, str], ...], joined: str
) -> None:
    """Of one column it is: a function of its list."""
    derive = f"{DERIVE}\n  least: {{limit: rent, top: 5}}"
    for change in changes:
        assert change[0] in derive
        derive = derive.replace(*change)
    more = "\n  sex: {role: quasi, do: keep, values: [0, 1], why: needed}\n  least: {role: confidential, do: recompute}"
    policy = policy_of(tmp_path / "site", protect=protect, derive=derive, columns=COLUMNS + more, drop="[name]")
    told = [words for words in not_covered_words(policy) if words.startswith("What is told of rows by")]
    assert [words.split(": ")[0].removeprefix("What is told of rows by ") for words in told] == ([joined] if joined else [])


def test_a_column_without_a_value_makes_none(tmp_path: Path) -> None:
    """A reason to have no value is no number; suppressed cells are empty, too; fills are values."""
    policy = policy_of(
        tmp_path / "site",
        protect="{method: dp-cdf, epsilon: 8, k: 3}",
        columns=COLUMNS.replace("outside: fail, why: known}", "outside: clamp, codes: {-8: refused}, missing: keep, why: k}"),
    )
    coded, blank = policy.columns["income"].reason_points
    table = pa.table({"town": ["north", None, "east"], "income": [7.0, coded, blank], "rent": [1.5] * 3, "odd": [1.0] * 3})
    published = spell_out(table, policy)
    assert published.column("total").to_pylist() == [8.5, None, None]
    assert published.column("level").to_pylist() == ["low", None, None]
    assert published.column("place").to_pylist() == ["coast", None, "elsewhere"]
    assert published.column("income_missing").to_pylist() == [None, "refused", "blank"]
    assert not list(check_released(published, policy, rows=3))


FEW = st.sampled_from([None, -8.0, -1.0, 0.0, 3.0])
WHOLE = FEW | st.integers(-(10**14), 10**14).map(float)
SHORT = FEW | st.decimals(-(10**8), 10**8, places=3).map(float)
OTHER = SHORT | st.floats(-1e12, 1e12, allow_subnormal=False)
KINDS: dict[str, dict[str, Any]] = {
    "total": {"sum": ["a", "b", "c"]},
    "coded total": {"sum": ["a", "b"], "codes": [-8]},
    "rest": {"difference": ["a", "b", "c"], "codes": [-8]},
    "band": {"bands": "a", "at": [Decimal(0), Decimal("2.5"), Decimal(5)]},
    "coded band": {"bands": "f", "at": [Decimal(0)], "labels": ["x", "y"], "codes": [-8]},
    "top": {"limit": "b", "top": Decimal(3)},
    "bottom": {"limit": "b", "bottom": Decimal("-0.5")},
    "coded bottom": {"limit": "f", "bottom": Decimal(0), "codes": [-8, "x"]},
    "ends": {"limit": "c", "bottom": Decimal("-0.5"), "top": Decimal(3), "codes": [-8]},
    "pooled": {"merge": "d", "into": {"x": ["p", "q"], "y": ["r"]}, "other": "z", "codes": ["s"]},
    "listed": {"merge": "d", "into": {"x": ["p", "q"], "y": ["r"]}},
    **{every: {"period": "e", "every": every, "codes": ["2021-01-01"]} for every in PERIODS},
}
DERIVED: dict[str, Derived] = {name: ADAPTER.validate_python(how) for name, how in KINDS.items()}
ADDED = [list(DERIVED).index(name) for name in ("total", "coded total", "rest")]
KINDS_OF = {**dict.fromkeys("abc", pa.float64()), **dict.fromkeys("def", pa.string())}
DATES = ("2026-08-15", "2021-01-03T23:59:59Z", "2020-12-31 00:00", "2021-01-01", "0001-01-01", "2024-02-30", None)
TEXTS = ("-8", "-8.0", "-3", "0", "+2.50", ".5", "1e3", "x", None)  # numbers as a CSV has them


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """One for all tables: making one takes longer than all that is done there."""
    with duckdb.connect(config={"threads": 1}) as connection:
        create_macros(connection)
        yield connection


def derive(
    database: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], derived: Mapping[str, Derived] = DERIVED
) -> list[tuple[Any, ...]]:
    """What the database makes of records of a, b, c (numbers), d, e and f (texts), a record each."""
    columns = {name: pa.array([row[i] for row in rows], KINDS_OF[name]) for i, name in enumerate("abcdef")}
    database.register("given", pa.table(columns))
    database.execute("CREATE OR REPLACE TABLE raw AS SELECT * FROM given")
    derive_columns(database, "test", derived)
    return database.table("raw").project(*[duckdb.ColumnExpression(name) for name in derived]).fetchall()


def remake(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What recomputing makes of the same."""
    columns = {name: pa.array([row[i] for row in rows], KINDS_OF[name]) for i, name in enumerate("abcdef")}
    made = [make_column(how, [columns[name] for name in how.inputs]).to_pylist() for how in DERIVED.values()]
    return list(zip(*made, strict=True))


def records_of(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Tables of a few records with such numbers."""
    texts = (st.sampled_from(["p", "q", "r", "s", "t", None]), st.sampled_from(DATES), st.sampled_from(TEXTS))
    return st.lists(st.tuples(numbers, numbers, numbers, *texts), min_size=1, max_size=30)


@settings(max_examples=40)
@given(st.one_of(records_of(WHOLE), records_of(SHORT)))
def test_recomputing_is_what_the_database_derives(database: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    """The same function of the same cells, to the last bit: floats have these sums exactly."""
    assert remake(rows) == derive(database, rows)


@settings(max_examples=20)
@given(records_of(OTHER))
def test_sums_of_other_numbers_are_close(database: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]]) -> None:
    """To nine digits, or as many as floats of their size have; all else is the same."""
    for row, mine, theirs in zip(rows, remake(rows), derive(database, rows), strict=True):
        tolerance = 1.01e-9 + 1e-14 * sum(abs(cell) for cell in row[:3] if cell is not None)
        for i, (one, other) in enumerate(zip(mine, theirs, strict=True)):
            assert one == (pytest.approx(other, rel=0, abs=tolerance) if i in ADDED and other is not None else other)


@pytest.mark.parametrize("unit", UNITS)
@settings(max_examples=10)
@given(rows=st.lists(st.tuples(st.sampled_from(DATES), st.sampled_from(DATES)), min_size=1, max_size=20))
def test_what_lies_between_dates_is_measured_as_it_is_derived(
    database: duckdb.DuckDBPyConnection, unit: Unit, rows: list[tuple[Any, ...]]
) -> None:
    """It is never recomputed, but the audit counts it in published dates."""
    how = {"new": ADAPTER.validate_python({"between": ["d", "e"], "unit": unit})}
    made = derive(database, [(None, None, None, *row, None) for row in rows], how)
    first, last = (count_units(pa.array([row[i] for row in rows], pa.string()), unit) for i in (0, 1))
    assert [np.nan if value is None else value for (value,) in made] == pytest.approx(last - first, rel=0, nan_ok=True)


VALUES = [
    (-1.0, 0.0, 5.0, "p", DATES[0], "-8"),
    (0.0, 4.0, -2.0, "s", DATES[1], "12"),
    (5.0, 1.5, 0.1, "t", None, None),
    (None, 2.5, 3.0, None, DATES[2], "-3"),
]


def test_every_kind_is_tried() -> None:
    """Who adds a way to derive a column adds it here; what lies between two dates is never made anew."""
    assert {type(how) for how in DERIVED.values()} == set(DERIVATIONS.values()) - {Between}
    ends = {(how.bottom is None, how.top is None) for how in DERIVED.values() if isinstance(how, Limit)}
    assert ends == {(True, False), (False, True), (False, False)}


def test_replacing_a_record_replaces_what_is_made_of_it_alone(database: duckdb.DuckDBPyConnection) -> None:
    """Over all tables of two of these records, in either order, hence all that differ from them in one: of every kind of
    derivation, by the database and by recomputing, it is what is made of the record by itself."""
    for make in (partial(derive, database), remake):
        alone = {record: make([record])[0] for record in VALUES}
        for table in itertools.product(VALUES, repeat=2):
            assert make(list(table)) == [alone[record] for record in table]  # whatever the other is


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 200)), min_size=1, max_size=20), st.data())
def test_what_is_made_changes_through_what_is_published_alone(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Two releases with the same published inputs have the same recomputed columns, whatever the records were: of a table the
    recomputed columns are made of nothing else than its own cells, each row of its own."""
    policy = _policy(tmp_path_factory)
    table = _table(rows)
    place = data.draw(st.integers(0, len(rows) - 1))
    other = _table([*rows[:place], data.draw(st.tuples(st.integers(0, 1000), st.integers(0, 200))), *rows[place + 1 :]])
    one, two = (pa.table(recompute(each, policy)).to_pylist() for each in (table, other))
    assert [*one[:place], *one[place + 1 :]] == [*two[:place], *two[place + 1 :]]
    assert pa.table(recompute(table.slice(place, 1), policy)).to_pylist() == [one[place]]


_POLICIES: dict[str, Any] = {}


def _policy(factory: pytest.TempPathFactory) -> Any:
    if "plain" not in _POLICIES:
        _POLICIES["plain"] = policy_of(factory.mktemp("plain") / "site")
    return _POLICIES["plain"]


def _table(rows: list[tuple[int, int]]) -> pa.Table:
    income, rent = (pa.array([float(row[i]) for row in rows]) for i in (0, 1))
    halves = pa.array([row[1] / 2 for row in rows])
    return pa.table({"town": ["north"] * len(rows), "income": income, "rent": halves, "odd": rent})


CHANGES = [
    ((TOTAL, "{role: weight, do: recompute}"), "'weight' is not allowed"),
    (("remark: {role: confidential, do: drop}", "remark: {role: confidential, do: recompute}"), "'remark' is no derived column"),
    (("{sum: [income, rent]}\n  back", "{sum: [income, sex]}\n  back"), "'total' would be made of 'sex', which is not published"),
    (("{sum: [income, rent]}\n  back", "{between: [income, rent], unit: day}\n  back"), "what lies between two dates, which is"),
    (("{sum: [income, rent]}\n  back", "{sum: [income, town]}\n  back"), "'north' of 'town' is no number"),
    (("{sum: [income, rent]}\n  back", "{sum: [back, rent]}\n  back"), "by a circle"),
    (("{sum: [income, rent]}\n  back", "{sum: [level, rent]}\n  back"), "is derived as text, and a number is needed"),
    (("{sum: [income, rent]}\n  back", "{sum: [income, rent], codes: [-8]}\n  back"), "may be -8 by chance"),
    (("inland: [south]}, other: elsewhere", "inland: [south]}"), "'east' of 'town' is in no group"),
    (("{merge: town, into: {coast: [north]", "{merge: income, into: {coast: [north]"), "is masked: a number, and an entry"),
    (("{merge: town, into: {coast: [north], inland: [south]}, other: elsewhere}", "{period: town, every: month}"), "is no date"),
    (("{merge: town, into: {coast: [north]", "{merge: total, into: {coast: [north]"), "is a number that is made anew"),
    (("town:   {role: quasi", "town:   {role: confidential"), "'place' is a quasi-identifier and made of 'town'"),
    (("at: [200, 600.5], labels: [low", "at: [200, 600.5], labels: [=low"), "takes '=low' of level for a formula"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[words for _, words in CHANGES])
def test_what_cannot_be_recomputed_is_told(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    """With the policy, by name."""
    tiny = make_site(tmp_path / "site", **PARTS)
    texts = {name: text.replace(*change) for name, text in PARTS.items()}
    assert texts != PARTS
    tiny.write_policy(**texts)
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert words in " ".join(map(str, refused.value.faults))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"gates": "{expected_error: {total: 0.5}}"}, "'total' is made of what is published, and has no noise of its own"),
        ({"gates": "{min_rows: 20, l_diversity: {level: 2}}"}, "'level' is not a released column"),
        ({"audit": "{groups: [place]}"}, "'place' is not a column with do: keep or generalise"),
        ({"audit": "{predict: {total: {above: 3}}}"}, "'total' is not a released column with do: noise or keep"),
        ({"tables": "{sums: {by: town, sum: total, epsilon: 1}}"}, "a table adds up what is protected"),
        ({"tables": "{counts: {by: place, epsilon: 1}}"}, "is made of what is published, row by row"),
        ({"protect": "{method: laplace, epsilon: 6, weights: {total: 2, income: 1}}"}, "'total' is not a column with do: noise"),
    ],
)
def test_other_parts_know_what_they_are(tmp_path: Path, parts: dict[str, str], words: str) -> None:
    """They have no noise, no share of epsilon and no groups of their own."""
    tiny = make_site(tmp_path / "site", **PARTS)
    tiny.write_policy(**{**PARTS, **parts})
    with pytest.raises(PolicyInvalid) as refused:
        load_policy(tiny.home / "policies" / "people.yaml")
    assert words in " ".join(map(str, refused.value.faults))


def test_columns_that_are_not_masked_keep_their_rules(tmp_path: Path) -> None:
    """And of a dropped one nothing is published that could break it."""
    head, _ = COLUMNS.split("  odd:")
    columns = head + "  odd:    {role: confidential, do: drop}"
    assert not find_ties(policy_of(tmp_path / "site", columns=columns))
