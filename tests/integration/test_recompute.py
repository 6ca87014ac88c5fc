"""Recomputed columns, from the policy to the analyst, and ties that what is published may break."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import jsonschema
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from release_pipeline.analyst import read_release
from release_pipeline.audit.package import check_released
from release_pipeline.pipeline.tables import read_table
from release_pipeline.policy import load_policy
from release_pipeline.policy.file.derivations import KINDS as DERIVATIONS
from release_pipeline.policy.file.derivations import Between, Derivation, Derived, Limit
from release_pipeline.policy.plans.plan import not_covered_words
from release_pipeline.policy.values.periods import KINDS as PERIODS
from release_pipeline.publish.public import CARD_SCHEMA
from release_pipeline.publish.verification import verify
from release_pipeline.rows.columns import load_table
from release_pipeline.rows.suppress import make_column
from release_pipeline.store.raw import create_macros, derive_columns
from release_pipeline.trust.keys import PrivateKey
from tests.integration.publishing import make_trusted_site, publish_release
from tests.integration.sites import TinySite, make_rows, make_site, refusal

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
    for ask in (lambda: release.mean("level"),):
        with pytest.raises(Exception, match=r"has no law of its own|does not follow from their means"):
            ask()
    assert "total, level, back: made of the other columns." in " ".join(release.explain())


@pytest.mark.parametrize(
    ("protect", "changes", "joined"),
    [
        ("{method: dp-um, epsilon: 1, k: 5}", (), "total, level, back"),
        ("{method: laplace, epsilon: 1}", (("{limit: rent, top: 5}", "{sum: [rent, sex]}"),), "least"),
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


FEW = st.sampled_from([None, -8.0, -1.0, 0.0, 3.0])
WHOLE = FEW | st.integers(-(10**14), 10**14).map(float)
SHORT = FEW | st.decimals(-(10**8), 10**8, places=3).map(float)

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


CHANGES = [
    (("remark: {role: confidential, do: drop}", "remark: {role: confidential, do: recompute}"), "'remark' is no derived column"),
    (("{sum: [income, rent]}\n  back", "{sum: [income, sex]}\n  back"), "'total' would be made of 'sex', which is not published"),
    (("{sum: [income, rent]}\n  back", "{sum: [back, rent]}\n  back"), "by a circle"),
    (("{sum: [income, rent]}\n  back", "{sum: [income, rent], codes: [-8]}\n  back"), "may be -8 by chance"),
    (("town:   {role: quasi", "town:   {role: confidential"), "'place' is a quasi-identifier and made of 'town'"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=[words for _, words in CHANGES])
def test_what_cannot_be_recomputed_is_told(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    """With the policy, by name."""
    tiny = make_site(tmp_path / "site", **PARTS)
    texts = {name: text.replace(*change) for name, text in PARTS.items()}
    assert texts != PARTS
    tiny.write_policy(**texts)
    assert words in refusal(lambda: load_policy(tiny.home / "policies" / "people.yaml"))
