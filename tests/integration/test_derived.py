"""Derived columns: functions of one record, made before roles apply, the same by every way into the pipeline."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from pydantic import TypeAdapter

from release_pipeline.apps.cli import main
from release_pipeline.errors import DataRefused
from release_pipeline.ledger.policies import policy_of
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy import load_policy
from release_pipeline.policy.file.derivations import Derivation, Derived, order_derivations
from release_pipeline.policy.plans.plan import not_covered_words
from release_pipeline.store.raw import RawTable, count_unread, create_macros, derive_columns
from tests.integration.sites import TinySite, make_rows, make_site, refusal
from tests.leaks import find_canaries

ADAPTER: TypeAdapter[Any] = TypeAdapter(Derivation)
DERIVE = """
  band:   {bands: income, at: [200, 600.5], labels: [low, middle, high]}
  capped: {limit: income, top: 900}
  total:  {sum: [capped, rent]}
  place:  {merge: town, into: {coast: [north], inland: [south]}, other: elsewhere}
  code:   {merge: remark, into: {a: [r0]}, other: b}"""
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  income: {role: confidential, do: drop}
  town:   {role: quasi, do: drop}
  code:   {role: confidential, do: drop}
  band:   {role: quasi, do: keep, values: [low, middle, high], why: needed}
  place:  {role: quasi, do: keep, values: [coast, inland, elsewhere], why: needed}
  capped: {role: confidential, do: noise, domain: [0, 900], grid: 1, outside: fail, why: known}
  total:  {role: confidential, do: noise, domain: [0, 1000], grid: 0.5, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, why: known}"""
PARTS = {"derive": DERIVE, "columns": COLUMNS, "drop": "[name, sex]"}


def site_of(home: Path, **parts: str) -> TinySite:
    """A site whose policy derives columns."""
    return make_site(home, **{**PARTS, **parts})


def derive(how: dict[str, Any], *cells: tuple[Any, ...], kinds: str = "VARCHAR") -> tuple[list[Any], dict[str, int]]:
    """What becomes of the cells of columns a, b, ..., and how many cannot be read."""
    found: dict[str, Derived] = {"new": ADAPTER.validate_python(how)}
    names = [chr(ord("a") + place) for place in range(len(cells[0]))]
    with duckdb.connect() as connection:
        create_macros(connection)
        connection.execute(f"CREATE TABLE raw ({', '.join(f'{name} {kinds}' for name in names)})")
        insert = f"INSERT INTO raw VALUES ({', '.join('?' for _ in names)})"  # noqa: S608
        connection.executemany(insert, [list(row) for row in cells])
        derive_columns(connection, "test", found)
        values = [value for (value,) in connection.sql("SELECT new FROM raw").fetchall()]
        return values, count_unread(RawTable(connection, "test"), found)["new"]


def test_sums_are_decimal_sums() -> None:
    """0.1 and 0.2 are 0.3, as a kept entry too; nothing is added to what is missing."""
    assert derive({"sum": ["a", "b"]}, ("0.1", "0.2"), ("1", ""), (None, "2"), ("1e3", "-2"))[0] == [0.3, None, None, 998]
    assert derive({"difference": ["a", "b", "c"]}, ("0.3", "0.1", "0.1"), ("5", "1", ""))[0] == [0.1, None]
    assert derive({"sum": ["a", "b"], "codes": [-9]}, ("1", "-9"), ("1", "2"))[0] == [None, 3]


def test_entries_are_merged_by_the_list() -> None:
    """Numbers are entries too; without another group what is not listed is counted, and stops the release."""
    how = {"merge": "a", "into": {"x": ["1", "2"], "y": [3]}, "other": "z"}
    assert derive(how, ("1",), (" 2 ",), ("3",), ("4",), ("",))[0] == ["x", "x", "y", "z", None]
    assert derive(how, (1,), (3,), (9,), kinds="INTEGER")[0] == ["x", "y", "z"]
    strict = {"merge": "a", "into": {"x": ["1"]}, "codes": ["-8"]}
    assert derive(strict, ("1",), ("7",), ("8",), ("-8",), ("",)) == (["x", None, None, None, None], {"a": 2})


def test_what_lies_between_two_dates_is_whole_units() -> None:
    """Of the units that they lie in; none where one is missing, and what is no date is counted."""
    cells = [
        ("2026-02-27 00:01", "2026-03-01"),
        ("2026-03-01", "2026-02-27T00:01"),
        ("2026-02-27 23:59:30", "2026-02-28 00:01:00"),
    ]
    made, unread = derive({"between": ["a", "b"], "unit": "day"}, *cells, ("", "2026-01-01"), ("2026-01-01", "soon"))
    assert (made, unread) == ([2, -2, 1, None, None], {"a": 0, "b": 1})
    coded = derive({"between": ["a", "b"], "unit": "day", "codes": ["9999-12-31"]}, ("2026-01-01", "9999-12-31"))
    assert coded == ([None], {"a": 0, "b": 0})


@pytest.mark.slow
def test_a_release_of_derived_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Made of columns that are dropped, and of each other; the source lacks them, and nothing that is dropped is released."""
    tiny = site_of(tmp_path / "site")
    run_release(tiny.flow())
    records = tiny.tables()["records"].to_pandas()
    table = pd.read_csv(tiny.home / "people.csv")
    source = table[table["year"] == 1].reset_index(drop=True)
    assert records["band"].tolist() == ["low" if i < 200 else "middle" if i < 600.5 else "high" for i in source["income"]]
    assert records["capped"].tolist() == source["income"].clip(upper=900).tolist()
    assert records["total"].tolist() == (source["income"].clip(upper=900) + source["rent"]).tolist()
    assert set(records["place"]) == {"coast", "inland", "elsewhere"}
    assert pd.read_csv(tiny.folder() / "data.csv").columns.tolist() == ["band", "place", "capped", "total", "rent"]
    assert not find_canaries({"data": (tiny.folder() / "data.csv").read_bytes()}, ["remark12"])
    file = tiny.home / "policies" / "people.yaml"
    assert main(["check", str(file)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "band: of income: below 200: low; from 200: middle; from 600.5: high" in said
    assert "total: of capped and rent: capped + rent" in said
    assert "any other becomes elsewhere" in said
    policy = tiny.site.policy("people")
    with tiny.site.open_registry(read_only=True) as registry:
        assert policy_of(registry, policy.canonical_hash()).derive == policy.derive
    assert main(["mask", str(tiny.home / "people.csv"), "--policy", str(file), "--release", "1", "-o", str(tmp_path / "o.csv"),
                 "--unaccounted"]) == 0  # fmt: skip
    assert pd.read_csv(tmp_path / "o.csv").columns.tolist() == ["band", "place", "capped", "total", "rent"]


def test_what_cannot_be_read_stops_the_release_before_its_charge(tmp_path: Path) -> None:
    """By column and count; the cell is shown nowhere."""
    tiny = site_of(tmp_path / "site", derive=DERIVE.replace(", other: elsewhere", ""))
    rows = make_rows()
    rows[3]["income"], rows[4]["income"] = "canary-4711-income", "canary-4712-income"
    tiny.write_rows(rows)
    with pytest.raises(DataRefused) as refused:
        run_release(tiny.flow())
    said = " ".join(refused.value.findings)
    assert "column income: up to 10 records with something else than a number, of which band is derived" in said
    assert "column town: up to 20 records with an entry that the policy does not list, of which place is derived" in said
    assert not tiny.charges()
    assert not find_canaries({"said": said.encode(), "registry": tiny.site.registry.read_bytes()}, ["canary-4711-income"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("{bands: income, at", "{bands: incom, at"), "is no column of the source"),
        (("labels: [low, middle, high]", "labels: [low, mid, high]"), "'mid' may come of it, and values does not list it"),
        (("{limit: income, top: 900}", "{limit: total, top: 900}"), "by a circle"),
        (("into: {coast: [north], inland: [south]}", "into: {coast: [north], inland: [north]}"), "in two groups"),
        (("{merge: town, into: {coast", "{merge: person, into: {coast"), "'person' identifies people: nothing is derived of it"),
    ],
)
def test_what_cannot_be_derived_is_told(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    """In the policy, all at once with what else is wrong."""
    tiny = site_of(tmp_path / "site")
    assert change[0] in DERIVE
    tiny.write_policy(**{**PARTS, "derive": DERIVE.replace(*change)})
    assert words in refusal(lambda: load_policy(tiny.home / "policies" / "people.yaml"))


def test_what_is_made_of_the_same_is_not_covered(tmp_path: Path) -> None:
    """A band that is kept tells of the number that is masked: whatever way both came from the same column."""
    tiny = site_of(tmp_path / "site")
    said = list(not_covered_words(load_policy(tiny.home / "policies" / "people.yaml")))
    [told] = [sentence for sentence in said if sentence.startswith("What band reveals about")]
    assert "capped" in told
    assert "total" in told
    assert "rent" not in told
    assert told.endswith("they are made of the same columns, and it is released without noise.")
    assert not any(sentence.startswith("What place reveals") for sentence in said)


def test_they_are_made_in_an_order_that_works() -> None:
    """Whatever the order in the file, which the canonical form does not keep; who waits for themselves is left out."""
    made = {name: ADAPTER.validate_python({"limit": of, "top": Decimal(1)}) for name, of in (("a", "b"), ("b", "c"), ("d", "d"))}
    assert order_derivations(made) == ["b", "a"]
    assert json.dumps(sorted(made))
