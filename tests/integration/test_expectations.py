"""A steward's expectations across columns: counted as a plain program does, judged before the charge, without a cell."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from release_pipeline.cli import main
from release_pipeline.errors import DataRefused
from release_pipeline.flow.mask import mask_table
from release_pipeline.flow.reading import collect_facts, needed_columns
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.stages.checks import EXPECTATIONS, FAMILIES
from release_pipeline.store.source import find_file, open_raw
from tests.integration.sites import (
    GX_WARNINGS,
    HEADER,
    Row,
    TinySite,
    failures,
    make_rows,
    make_site,
    materializations,
    policy_text,
    run_job,
)
from tests.leaks import find_canaries

pytestmark = GX_WARNINGS
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  came:   {role: confidential, do: drop}
  went:   {role: confidential, do: drop}
  part:   {role: confidential, do: drop}
  house:  {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: fail, why: known}
  rent:   {role: confidential, do: noise, domain: [0, 100], grid: 0.5, outside: clamp, missing: {fill: 0}, why: known}"""
EXPECT = """
  went-after-coming: {compare: [came, <, went], read_as: dates}
  part-of-income:    {compare: [part, <=, income], why: a part is no more than the whole}
  adds-up:           {sum: [part, rent], equals: house, grid: 0.01, within: 0.02}
  once-each:         {unique: [town, remark]}
  one-person:        {unique: [person]}
  no-rent-north:     {missing: rent, only_when: {town: [north, south]}}
  rent-known-east:   {present: rent, when: {town: east}}
  no-remark-at-none: {missing: remark, when: {rent: [0, 0.5]}}
  women-north:       {values: {town: [north, south]}, when: {sex: 1}}
  only-north-poor:   {values: {income: [0, 1]}, only_when: {town: north}}"""
EXPECTED = (*HEADER[:6], "remark", "name", "came", "went", "part", "house")
ODD: tuple[Mapping[str, str], ...] = (  # cells that a rule must make something of, of which no cell of make_rows is
    {"came": "2020-01-01", "went": "2020-01-01"},
    {"came": "2020-01-01", "went": "2019-12-31T23:59"},
    {"came": "2020-01-01", "went": "2020-01-01 00:00:01Z"},
    {"came": "01.02.2020", "went": "2021-01-01"},
    {"came": "2020-02-30", "went": "2021-01-01"},
    {"came": "2020-01-01T10:00+02", "went": "2021-01-01"},
    {"came": " ", "went": "no date"},
    {"came": "2020-01-01", "went": ""},
    {"part": "1001"},
    {"part": "0x1", "rent": "7", "house": "7"},
    {"part": "", "house": "5"},
    {"part": "0.1", "rent": "0.5", "house": "0.6"},
    {"part": "0.1", "rent": "0.5", "house": "0.62"},
    {"part": "0.1", "rent": "0.5", "house": "0.63"},
    {"part": "0.1", "rent": "0.5", "house": "none"},
    {"part": "inf", "house": "1"},
    {"rent": "", "town": "east"},
    {"rent": "", "town": "north"},
    {"rent": "", "town": ""},
    {"rent": "0.0", "remark": "a"},
    {"rent": "0.50", "remark": ""},
    {"remark": "twice", "town": "north"},
    {"remark": "twice ", "town": "north"},
    {"remark": "", "town": "north"},
    {"person": "P0003 "},
    {"person": "", "sex": "1", "town": "east"},
    {"sex": "1.0", "town": ""},
    {"income": "1.0", "town": "east"},
    {"income": "01", "town": "north"},
)


def good_rows(count: int = 60) -> list[Row]:
    """Records that are as all rules expect."""
    rows = [row | {"went": "", "came": "", "part": "", "house": ""} for row in make_rows(count, releases=("1",))]
    for i, row in enumerate(rows):
        row |= {"came": "2020-01-01", "went": f"2020-02-{1 + i % 28:02}", "town": ("north", "south")[i % 2]}
        row |= {"part": f"{int(row['income']) / 4:.2f}", "rent": row["rent"] if float(row["rent"]) > 0.5 else "7"}
        row["house"] = str(Decimal(row["part"]) + Decimal(row["rent"]))
        row["income"] = row["income"] if int(row["income"]) > 1 else "1000"
    return rows


def odd_rows() -> list[Row]:
    """The same, each with odd cells of its own."""
    return [row | ODD[i] if i < len(ODD) else row for i, row in enumerate(good_rows())]


def write(tiny: TinySite, rows: list[Row]) -> None:
    """Write the source with these columns."""
    tiny.write_rows(rows, header=EXPECTED)


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site whose policy expects all of it."""
    found = make_site(tmp_path / "site", columns=COLUMNS, expect=EXPECT)
    write(found, good_rows())
    return found


# counting, beside a plain program


def text_of(row: Row, column: str) -> str | None:
    """An entry; None where it is missing."""
    return row[column].strip() or None


def number_of(row: Row, column: str) -> Decimal | None:
    """A number as people write it; None for anything else."""
    try:
        number = Decimal(row[column].strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def date_of(row: Row, column: str) -> datetime | None:
    """A date, perhaps with a time, of no other zone than UTC."""
    text = row[column].strip().removesuffix("Z")
    try:
        return datetime.fromisoformat(text) if text[4:5] == "-" and "+" not in text else None
    except ValueError:
        return None


def in_order(row: Row, names: tuple[str, str], read: Callable[[Row, str], Any], *, equal: bool) -> bool:
    """Whether the first comes before the second; nothing is compared where one is missing."""
    if None in [text_of(row, name) for name in names]:
        return True
    first, second = (read(row, name) for name in names)
    return first is not None and second is not None and (first < second or (equal and first == second))


def adds_up(row: Row) -> bool:
    """Whether part and rent are house, within 0.02."""
    if None in [text_of(row, name) for name in ("part", "rent", "house")]:
        return True
    numbers = [number_of(row, name) for name in ("part", "rent", "house")]
    part, rent, house = (round(number * 100) if number is not None else None for number in numbers)
    return part is not None and rent is not None and house is not None and abs(part + rent - house) <= 2


def count_repeated(rows: list[Row], key: Callable[[Row], tuple[str | None, ...]]) -> int:
    """Records that are like another one."""
    seen = Counter(key(row) for row in rows)
    return sum(count for entries, count in seen.items() if count > 1 and None not in entries)


def count_plainly(rows: list[Row]) -> dict[str, int]:
    """How many records break each rule, in Python."""

    def count(breaks: Callable[[Row], bool]) -> int:
        return sum(breaks(row) for row in rows)

    def person(row: Row) -> str | None:
        return text_of(row, "person") and row["person"].strip().lower()

    return {
        "went-after-coming": count(lambda row: not in_order(row, ("came", "went"), date_of, equal=False)),
        "part-of-income": count(lambda row: not in_order(row, ("part", "income"), number_of, equal=True)),
        "adds-up": count(lambda row: not adds_up(row)),
        "once-each": count_repeated(rows, lambda row: (text_of(row, "town"), text_of(row, "remark"))),
        "one-person": count_repeated(rows, lambda row: (person(row),)),
        "no-rent-north": count(lambda row: text_of(row, "rent") is None and text_of(row, "town") not in ("north", "south")),
        "rent-known-east": count(lambda row: text_of(row, "town") == "east" and text_of(row, "rent") is None),
        "no-remark-at-none": count(
            lambda row: number_of(row, "rent") in (Decimal(0), Decimal("0.5")) and text_of(row, "remark") is not None
        ),
        "women-north": count(lambda row: text_of(row, "sex") == "1" and text_of(row, "town") not in ("north", "south", None)),
        "only-north-poor": count(
            lambda row: number_of(row, "income") in (Decimal(0), Decimal(1)) and text_of(row, "town") != "north"
        ),
    }


def count_broken(policy: Policy, file: Path) -> Mapping[str, int]:
    """How many records break each rule, as the pipeline counts them."""
    source = find_file(file, expected=policy.declared)
    with open_raw(source, {name: name for name in needed_columns(policy)}) as table:
        return collect_facts(policy, table).broken


def test_counts_are_those_of_a_plain_program(tiny: TinySite, tmp_path: Path) -> None:
    """Every rule is broken by some of the odd records and by none of the good ones; in Parquet as in CSV."""
    policy, source, parquet = tiny.site.policy("people"), tiny.home / "people.csv", tmp_path / "people.parquet"
    assert set(count_broken(policy, source).values()) == {0}
    assert set(count_plainly(good_rows()).values()) == {0}
    write(tiny, odd_rows())
    expected = count_plainly(odd_rows())
    assert all(expected.values()), expected
    assert count_broken(policy, source) == expected
    duckdb.sql(f"COPY (FROM read_csv('{source}', all_varchar = true)) TO '{parquet}'")
    assert count_broken(policy, parquet) == expected


def test_typed_columns_are_compared_as_they_are(tmp_path: Path) -> None:
    """Numbers, dates and times of a typed source; what is of another type than is asked for breaks every rule about it."""
    file = tmp_path / "people.parquet"
    duckdb.sql(
        f"""COPY (SELECT i AS person, DATE '2020-01-01' + i::INTEGER AS came, TIMESTAMP '2020-01-03 12:00:00' AS went,
        i * 0.1 AS part,
        0.2::DOUBLE AS rent, (i * 0.1 + 0.2)::DOUBLE AS house, CASE WHEN i = 3 THEN 'nan'::DOUBLE ELSE i END AS income,
        i % 2 = 0 AS remark, 'north' AS town, 1 AS sex FROM range(6) AS t(i)) TO '{file}'"""  # noqa: S608
    )
    rules = """
  dates:   {compare: [came, <, went], read_as: dates}
  numbers: {compare: [came, <, went]}
  truths:  {compare: [remark, <, part]}
  sums:    {sum: [part, rent], equals: house, grid: 0.1}
  whole:   {compare: [income, <=, part]}
  nothing: {present: remark, when: {sex: 1}}"""
    broken = count_broken(
        parse_policy(policy_text(columns=COLUMNS, expect=rules, source="{path: x.csv}", releases="once"), name="p"), file
    )
    assert broken == {"dates": 3, "numbers": 6, "truths": 6, "sums": 0, "whole": 4, "nothing": 0}


def test_columns_with_odd_names_are_named_safely(tmp_path: Path) -> None:
    """Quotes and brackets in a name are a part of it."""
    odd = """a"b); DROP TABLE raw; --"""
    columns = COLUMNS.replace("remark:", f"'{odd}':")
    policy = parse_policy(
        policy_text(
            columns=columns,
            source="{path: people.csv}",
            releases="once",
            expect=f"\n  one: {{unique: ['{odd}', town]}}\n  two: {{compare: ['{odd}', <, income]}}",
        ),
        name="people.yaml",
    )
    tiny = make_site(tmp_path / "site")
    tiny.write_rows([{**row, odd: row["remark"]} for row in good_rows()], header=(*EXPECTED, odd))
    assert count_broken(policy, tiny.home / "people.csv") == {"one": 0, "two": 60}


# a release


def test_broken_rule_blocks_before_the_charge_and_good_data_go_through(tiny: TinySite) -> None:
    """Each rule is named with its count and columns, nothing is charged; then a candidate, whose page says they held."""
    write(tiny, odd_rows())
    expected = count_plainly(odd_rows())
    with pytest.raises(DataRefused) as refused:
        tiny.flow().run()
    for name, rule in tiny.site.policy("people").expect.items():
        most = -(-expected[name] // 10) * 10  # one person must not be told from none but by whether the rule holds
        columns = ", ".join(rule.columns)
        assert f"expectation {name}: up to {most} records break it, and none may (columns {columns})." in refused.value.findings
    assert tiny.charges() == []
    assert tiny.status().state == "blocked"
    assert "expectation adds-up" in tiny.status().reason
    write(tiny, good_rows())
    tiny.flow().run()
    assert tiny.status().state == "candidate"
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    assert evidence["checks_passed"][EXPECTATIONS] == len(expected)
    assert evidence["expectations"] == {name: {"broken": 0, "at_most": 0} for name in expected}
    page = (tiny.folder() / "report.html").read_text()
    assert all(f"records that break the expectation {name}" in page for name in expected)


def test_what_may_be_broken_is_said_and_stops_nothing(tmp_path: Path) -> None:
    """Up to the declared number or share; one record more stops."""
    rules = "\n  a: {compare: [came, <, went], read_as: dates, at_most: 2}\n  b: {unique: [remark], at_most: 5%}"
    tiny = make_site(tmp_path / "site", columns=COLUMNS, expect=rules)
    rows = good_rows()
    for i in (0, 1):
        rows[i] |= {"went": "2019-01-01"}
    for i in (5, 6, 7):  # 5% of 60
        rows[i] |= {"remark": "same"}
    write(tiny, rows)
    tiny.flow().run()
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    assert evidence["expectations"] == {"a": {"broken": 2, "at_most": 2}, "b": {"broken": 3, "at_most": 3}}
    assert "expectation a: up to 10 records break it, and at most 2 records may (columns came, went)." in evidence["warnings"]
    assert "expectation b: up to 10 records break it, and at most 5% of records may (columns remark)." in evidence["warnings"]
    other = make_site(tmp_path / "other", columns=COLUMNS, expect=rules)
    rows[2] |= {"went": "2019-01-01"}
    write(other, rows)
    with pytest.raises(DataRefused, match="do not meet") as refused:
        other.flow().run()
    assert refused.value.findings == (
        "expectation a: up to 10 records break it, and at most 2 records may (columns came, went).",
    )


def test_nothing_of_the_other_columns_is_kept(tiny: TinySite) -> None:
    """Dropped columns are read for the rules and gone after validation: the candidate has those that are released."""
    tiny.flow().ingest()
    assert {"came", "went", "part", "house", "remark"} <= set(tiny.tables()["raw"].column_names)
    tiny.flow().validate()
    assert "raw" not in tiny.tables()
    assert set(tiny.tables()["records"].column_names) & {"came", "went", "part", "house", "remark"} == set()


def test_policy_without_rules_has_the_evidence_that_it_had(tmp_path: Path) -> None:
    """Eight families, no word of expectations."""
    tiny = make_site(tmp_path / "site")
    tiny.flow().run()
    evidence = json.loads((tiny.folder() / "evidence.json").read_text())
    assert evidence["checks_passed"].keys() == FAMILIES.keys()
    assert evidence["expectations"] == {}


def test_absent_column_is_told_by_the_header_alone(tiny: TinySite) -> None:
    """A rule about a column that the source does not have cannot be judged, so it does not pass."""
    tiny.write_rows(good_rows(), header=[name for name in EXPECTED if name not in ("remark", "came")])
    with pytest.raises(DataRefused) as refused:
        tiny.flow().run()
    assert "column came: declared, but not in the file. Deliver it, or take it out of the policy." in refused.value.findings
    assert not any("expectation" in finding for finding in refused.value.findings)
    assert tiny.charges() == []


def test_the_family_fails_where_none_of_its_rules_was_judged(tmp_path: Path) -> None:
    """Fail closed: the only rule's column is gone."""
    tiny = make_site(tmp_path / "site", columns=COLUMNS, expect="\n  a: {unique: [remark]}")
    tiny.write_rows(good_rows(), header=[name for name in EXPECTED if name != "remark"])
    tiny.flow().ingest()
    verdicts = {verdict.family: verdict for verdict in tiny.flow().validate().verdicts}
    assert not verdicts[EXPECTATIONS].passed
    assert verdicts[EXPECTATIONS].messages == (f"nothing of the family {EXPECTATIONS} was checked.",)


def test_mask_checks_them_too(tiny: TinySite) -> None:
    """The method alone on a file refuses what a release would refuse."""
    write(tiny, odd_rows())
    with pytest.raises(DataRefused) as refused:
        mask_table(tiny.site.policy("people"), tiny.home / "people.csv", release="1")
    assert any(finding.startswith("expectation adds-up: ") for finding in refused.value.findings)
    write(tiny, good_rows())
    assert mask_table(tiny.site.policy("people"), tiny.home / "people.csv", release="1").records == 60


# Dagster, and what leaves


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's records, in memory."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def test_dagster_shows_each_rule_with_its_count(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """A ninth check that blocks, judged by Great Expectations: for each rule columns, name, count and what is allowed."""
    good = run_job(tiny, instance=instance)
    assert good.success
    found = {one.check_name: one for one in good.get_asset_check_evaluations()}
    assert found[EXPECTATIONS].passed
    assert found[EXPECTATIONS].blocking
    tiny.write_policy(columns=COLUMNS, expect=EXPECT, policy="other")
    write(tiny, odd_rows())
    bad = run_job(tiny, instance=instance, policy="other")
    [failure] = failures(bad)
    assert "expectation adds-up: " in failure
    assert not {"microaggregated", "candidate"} & materializations(bad).keys()
    check = {one.check_name: one for one in bad.get_asset_check_evaluations()}[EXPECTATIONS]
    assert not check.passed
    records: Any = check.metadata["counts"]
    rows = {row.data["fact"]: row.data for row in records.records}
    assert {name: row["up_to"] for name, row in rows.items()} == {
        name: -(-broken // 10) * 10 for name, broken in count_plainly(odd_rows()).items()
    }
    assert rows["adds-up"] == {"column": "part, rent, house", "fact": "adds-up", "up_to": rows["adds-up"]["up_to"], "at_most": 0}


CANARIES = {
    "person": "PersonCanary-7Qz",
    "remark": "RemarkCanary-9Jx",
    "came": "CameCanary-3Lp",
    "went": "WentCanary-5Mt",
    "part": "PartCanary-8Rk",
    "house": "HouseCanary-2Bd",
    "town": "TownCanary-6Fw",
}


def test_no_cell_leaves_through_a_broken_rule(tiny: TinySite, instance: dg.DagsterInstance) -> None:
    """Canaries in every column that rules are about: none in Dagster's records, in what is printed, in any file of the site."""
    rows = [row | {name: f"{canary}-{i}" for name, canary in CANARIES.items()} for i, row in enumerate(odd_rows())]
    write(tiny, rows)
    result = run_job(tiny, instance=instance)
    assert not result.success
    blobs = {"Dagster": "\n".join([*map(str, result.all_events), *failures(result)]).encode()}
    handler = signal.getsignal(signal.SIGTERM)
    for name, arguments in {
        "run": ["run", "people", "--release", "1"],
        "status": ["status"],
        "status in full": ["status", "--json"],
        "run in full": ["run", "people", "--release", "1", "--json"],
    }.items():
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            main([*arguments, "--home", str(tiny.home)])
        blobs[name] = (out.getvalue() + err.getvalue()).encode()
    signal.signal(signal.SIGTERM, handler)
    assert b"expectation went-after-coming: up to 60 records break it" in blobs["run"]
    assert b"expectation once-each: " not in blobs["run"]
    source = tiny.home / "people.csv"
    files = [file for file in tiny.home.rglob("*") if file.is_file() and tiny.site.vault not in file.parents and file != source]
    blobs |= {str(file): file.read_bytes() for file in files} | {"events": repr(tiny.events()).encode()}
    assert find_canaries(blobs, CANARIES.values()) == []
    assert find_canaries({"source": source.read_bytes()}, CANARIES.values())
