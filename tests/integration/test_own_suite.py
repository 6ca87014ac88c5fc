"""A steward's own suite of Great Expectations: judged before the charge, kept as counts, and never with a cell."""

from __future__ import annotations

import contextlib
import io
import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.errors import DataRefused
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.release import run_release
from release_pipeline.pipeline.validate import collect_checks
from release_pipeline.rows.checks import OWN_SUITE
from tests.integration.sites import HEADER, Row, TinySite, failures, make_rows, make_site, refusal, run_job
from tests.leaks import find_canaries

COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}"""
HOLDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("expect_table_row_count_to_be_between", {"min_value": 10, "max_value": 1000}),
    ("expect_column_values_to_be_between", {"column": "income", "min_value": 0, "max_value": 1000}),
    ("expect_column_mean_to_be_between", {"column": "rent", "min_value": 0, "max_value": 100}),
    ("expect_column_values_to_match_regex", {"column": "remark", "regex": "^remark[0-9]+$", "mostly": 0.9}),
    ("expect_column_values_to_be_unique", {"column": "person"}),
    ("expect_column_distinct_values_to_be_in_set", {"column": "town", "value_set": ["north", "south", "east"]}),
)
BROKEN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("expect_column_values_to_be_in_set", {"column": "remark", "value_set": ["no remark"]}),
    ("expect_column_max_to_be_between", {"column": "income", "max_value": -1}),
    ("expect_column_values_to_be_between", {"column": "remark", "min_value": 3, "max_value": 4}),  # raises, and quotes a cell
    ("expect_column_values_to_match_strftime_format", {"column": "remark", "strftime_format": "%Y"}),
    ("expect_table_columns_to_match_set", {"column_set": ["other"]}),
)


def make_own(folder: Path, suite: tuple[tuple[str, dict[str, Any]], ...], rows: list[Row] | None = None) -> TinySite:
    """A site whose policy names a suite."""
    tiny = make_site(folder, columns=COLUMNS, expectations="people.json", rows=rows or make_rows(releases=("1",)))
    write_suite(tiny, suite)
    return tiny


def write_suite(tiny: TinySite, suite: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    """As Great Expectations writes one, with parts that we do not need."""
    expectations = [{"type": name, "kwargs": kwargs, "meta": {}, "severity": "critical"} for name, kwargs in suite]
    text = json.dumps({"name": "own", "expectations": expectations, "meta": {"great_expectations_version": "1.24.1"}})
    (tiny.home / "policies" / "people.json").write_text(text)


def test_a_broken_suite_stops_the_release_before_the_charge(tmp_path: Path) -> None:
    """Each expectation says its number, type, columns, and how many records where it counts them; nothing is charged."""
    tiny = make_own(tmp_path / "site", BROKEN)
    with pytest.raises(DataRefused) as refused:
        run_release(tiny.flow())
    told = refused.value.findings
    assert len(told) == len(BROKEN)
    first = "expectation 1 of the suite (expect_column_values_to_be_in_set, columns remark): up to 60 records break it."
    assert told[0] == f"{first} Correct the source, or the suite."
    assert all(words.endswith("Compare its arguments with the column.") for words in told[1:3])
    assert tiny.charges() == []
    assert tiny.status().state == "blocked"


def test_the_suite_is_a_part_of_what_is_approved(tmp_path: Path) -> None:
    """Its content, not its name, is hashed; a policy without one has the hash that it had."""
    tiny = make_own(tmp_path / "site", HOLDS)
    before = tiny.site.policy("people")
    write_suite(tiny, HOLDS[:2])
    after = tiny.site.policy("people")
    assert before.canonical_hash() != after.canonical_hash()
    assert len(after.expectations) == 2
    tiny.write_policy(columns=COLUMNS)
    assert "expectations" not in json.loads(tiny.site.policy("people").canonical_json())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is no suite of Great Expectations"),
        ('{"expectations": [{"type": "expect_x", "kwargs": {"column": "shoes"}}]}', "'shoes' is not declared under columns"),
        (
            '{"expectations": [{"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "person"}}]}',
            "would tell of single people",
        ),
        (
            '{"expectations": [{"type": "expect_x", "kwargs": {"column": "rent", "row_condition": "rent > 3"}}]}',
            "a text could run",
        ),
        (
            '{"expectations": [{"type": "expect_x", "kwargs": {"column": "rent", "row_condition": '
            '{"type": "pass_through", "pass_through_filter": "rent > 3"}}}]}',
            "a text could run",
        ),
    ],
)
def test_a_suite_that_no_release_could_go_by_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """With the line of the policy and what to do."""
    tiny = make_own(tmp_path / "site", HOLDS)
    (tiny.home / "policies" / "people.json").write_text(text)
    told = refusal(lambda: tiny.site.policy("people"))
    assert words in told
    assert "people.yaml:" in told.splitlines()[0]


def compare(name: str, operator: str, parameter: Any) -> dict[str, Any]:
    """A condition as the library writes one."""
    return {"type": "comparison", "column": {"name": name}, "operator": operator, "parameter": parameter}


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (compare("shoes", "==", 3), "'shoes' is not declared under columns"),
        (compare("person", "==", "p1"), "would tell of single people"),
        (compare("sex", "==", 1), "declares no entry 1."),
        (compare("town", "IN", ["north", "nroth"]), 'declares no entry "nroth".'),
        (compare("town", "IN", []), "a text could run"),
        (compare("town", "==", "north` or @open"), "a text could run"),
        (compare("rent", "==", None), "a text could run"),
        (compare("rent", "is", 3), "a text could run"),
        ({**compare("rent", ">", 3), "more": 1}, "a text could run"),
        ({"type": "and", "conditions": [compare("rent", ">", 3), None]}, "a text could run"),
        ({"type": "and", "conditions": [compare("rent", ">", 3), {"type": "pass_through"}]}, "a text could run"),
    ],
)
def test_a_condition_that_could_run_or_that_nobody_meets_is_refused(tmp_path: Path, condition: Any, words: str) -> None:
    """With the policy, before any data are read."""
    kwargs = {"column": "income", "max_value": 9, "row_condition": condition}
    tiny = make_own(tmp_path / "site", (("expect_column_values_to_be_between", kwargs),))
    assert words in refusal(lambda: tiny.site.policy("people"))


DERIVE = """
  apart: {difference: [left, came]}"""
BOTH = ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "left", "column_B": "came"})

OF_SEVERAL: tuple[tuple[str, dict[str, Any], int], ...] = (
    (*BOTH, 1),
    (BOTH[0], {**BOTH[1], "row_condition": compare("town", "==", "north")}, 0),
    ("expect_compound_columns_to_be_unique", {"column_list": ["person", "came"]}, 2),
    ("expect_multicolumn_sum_to_equal", {"column_list": ["came", "left"], "sum_total": 110}, 57),
    ("expect_column_values_to_be_between", {"column": "apart", "min_value": 0.5}, 1),
    (
        "expect_column_values_to_be_null",
        {"column": "remark", "row_condition": {"type": "and", "conditions": [compare("town", "IN", ["south", "east"])] * 2}},
        1,
    ),
    (
        "expect_column_values_to_be_null",
        {"column": "came", "row_condition": {"type": "nullity", "column": {"name": "left"}, "is_null": True}},
        0,
    ),
    (
        "expect_column_values_to_be_between",
        {"column": "left", "min_value": 100, "row_condition": compare("came", ">=", 67)},
        1,
    ),
    (BOTH[0], {**BOTH[1], "row_condition": compare("sex", "IN", ["0", "1"])}, 1),
)


def test_rules_across_columns_and_under_conditions_are_counted(tmp_path: Path) -> None:
    """By the records that break each: numbers of columns that are not released are compared as numbers, not as texts."""
    rows = make_rows(releases=("1",))
    for place, row in enumerate(rows):
        row |= {"came": str(9 + place), "left": str(100 - place // 59 * 99), "town": "south" if place else "north", "remark": ""}
    rows[0]["came"] = "10"  # like the second
    rows[1] |= {"remark": "another", "person": rows[0]["person"]}
    rows[2] |= {"came": "", "left": ""}
    columns = COLUMNS + "".join(f"\n  {name}: {{role: confidential, do: drop}}" for name in ("came", "left", "apart"))
    tiny = make_site(tmp_path / "site", columns=columns, derive=DERIVE, expectations="people.json", rows=rows)
    tiny.write_rows(rows, header=(*HEADER, "came", "left"))
    write_suite(tiny, tuple((kind, kwargs) for kind, kwargs, _ in OF_SEVERAL))
    checks = [check for check in ingest(tiny.flow()) and collect_checks(tiny.flow()).checks if check.family == OWN_SUITE]
    assert [check.count for check in checks] == [count for *_, count in OF_SEVERAL], [check.message for check in checks]


def test_the_suite_of_the_documentation_is_accepted(tmp_path: Path) -> None:
    """What docs/policy.md shows, for a policy with its columns."""
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
    text = re.search(r"```text\n(\{\"name\": \"visits\".*?)```", page, re.DOTALL)
    assert text
    columns = COLUMNS.replace("person: ", "visit: {role: identifier, do: drop}\n  person: ").replace("rent: ", "paid: ")
    names = ("stay", "ward", "came", "left", "rent", "tenure")
    columns += "".join(f"\n  {name}: {{role: confidential, do: drop}}" for name in names)
    tiny = make_site(tmp_path / "site", columns=columns, expectations="people.json", rows=make_rows(releases=("1",)))
    (tiny.home / "policies" / "people.json").write_text(text[1])
    assert len(tiny.site.policy("people").expectations) == 5


def test_a_condition_on_numbers_that_are_texts_does_not_pass(tmp_path: Path) -> None:
    """No record would meet it, so that it would hold whatever the data are."""
    condition = {"column": "rent", "max_value": -1, "row_condition": compare("remark", ">", 3)}
    tiny = make_own(tmp_path / "site", (("expect_column_values_to_be_between", condition),))
    with pytest.raises(DataRefused) as refused:
        run_release(tiny.flow())
    assert "cannot be judged" in refused.value.findings[0]


CANARIES = {"person": "PersonCanary-7Qz", "remark": "RemarkCanary-9Jx", "name": "NameCanary-3Lp"}


def test_no_cell_leaves_through_a_suite(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is broken, and some raise: nothing in Dagster's records, in what is printed or logged, in any file of the site;
    and nothing asks the network."""
    asked: list[Any] = []

    def connect(_: socket.socket, address: Any) -> None:
        asked.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", connect)
    caplog.set_level(0)
    rows = [
        row | {name: f"{canary}-{i}" for name, canary in CANARIES.items()} for i, row in enumerate(make_rows(releases=("1",)))
    ]
    twice = ("expect_column_values_to_be_unique", {"column": "person"})
    tiny = make_own(tmp_path / "site", (*BROKEN, twice), [*rows[:-1], rows[0]])
    with dg.DagsterInstance.ephemeral() as instance:
        result = run_job(tiny, instance=instance, policy="people")
    assert not result.success
    assert any("expectation 1 of the suite" in words for words in failures(result))
    blobs = {"Dagster": "\n".join([*map(str, result.all_events), *failures(result)]).encode()}
    handler = signal.getsignal(signal.SIGTERM)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        main(["run", "people", "--release", "1", "--home", str(tiny.home)])
        main(["status", "--json", "--home", str(tiny.home)])
    signal.signal(signal.SIGTERM, handler)
    printed = capfd.readouterr()
    blobs |= {"run": (out.getvalue() + err.getvalue() + printed.out + printed.err).encode(), "log": caplog.text.encode()}
    source = tiny.home / "people.csv"
    files = [file for file in tiny.home.rglob("*") if file.is_file() and tiny.site.vault not in file.parents and file != source]
    blobs |= {str(file): file.read_bytes() for file in files} | {"events": repr(tiny.events()).encode()}
    assert find_canaries(blobs, CANARIES.values()) == []
    assert find_canaries({"source": source.read_bytes()}, CANARIES.values())
    assert asked == []
