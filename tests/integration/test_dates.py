"""Dates and times as masked numbers, from every kind of source to the analyst: protected as numbers are, read and published as
dates."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import frictionless
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.analyst import Moments, read_release
from release_pipeline.errors import InvalidArgument
from release_pipeline.pipeline.mask_file import mask_table
from release_pipeline.pipeline.reading import collect_facts, typed_column
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.publish.verification import verify
from release_pipeline.rows.checks import check_facts, refusals
from release_pipeline.store.raw import RawTable, create_macros
from release_pipeline.trust.keys import PrivateKey
from tests.integration.publishing import failures_of, make_trusted_site, publish_release
from tests.integration.sites import Row, TinySite, make_rows, make_site, policy_text

SURE = 1 - 1e-9  # of intervals around noise that no test knows
FIRST, LAST = date(2000, 1, 1), date(2019, 12, 31)
COLUMNS = """
  person: {role: identifier, do: drop}
  remark: {role: confidential, do: drop}
  town:   {role: quasi, do: keep, values: [north, south, east], why: needed}
  sex:    {role: quasi, do: keep, values: [0, 1], why: needed}
  income: {role: confidential, do: noise, domain: [2000-01-01, 2019-12-31], grid: 1 day, outside: clamp, why: known,
           codes: {9999-12-31: open}, missing: keep, atoms: [2010-01-01]}
  rent:   {role: confidential, do: noise, domain: [2020-01-01, 2020-01-31], grid: 15 minutes, outside: clamp, why: known}"""
PLAIN = COLUMNS.replace("codes: {9999-12-31: open}, missing: keep, atoms: [2010-01-01]", "missing: {fill: 2005-07-01}")
PARTS = {
    "protect": "{method: dp-cdf, epsilon: 8, k: 5}",
    "columns": COLUMNS,
    "tables": "{when: {by: sex, sum: rent, epsilon: 4}, sexes: {by: sex, epsilon: 4}}",
    "gates": "{min_rows: 20, atom_share: {income: 0.1}}",
    "audit": "{groups: [sex]}",
    "publish": "{formats: [parquet, csv, dta, sav]}",
}
CAP = "epsilon: 40, definition: dp, scope: column"


def make_records(count: int = 400) -> list[Row]:
    """Days with a heap, an open end and blanks; times of one month."""
    rows, numbers = make_rows(count), random.Random(5)  # noqa: S311
    for row in rows:
        day = FIRST + timedelta(days=int(numbers.betavariate(2, 4) * 7000))
        row["income"] = numbers.choices([day.isoformat(), "2010-01-01", "9999-12-31", ""], [70, 20, 6, 4])[0]
        row["rent"] = (datetime(2020, 1, 1) + timedelta(minutes=numbers.randrange(29 * 24 * 60))).isoformat(" ")
    return rows


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, PrivateKey]) -> tuple[TinySite, Path]:
    """A site, and its package."""
    tiny = make_trusted_site(tmp_path_factory.mktemp("dates") / "site", keys, rows=make_records(), cap=CAP, **PARTS)
    return tiny, publish_release(tiny, keys)


def test_a_package_has_dates(published: tuple[TinySite, Path]) -> None:
    """As such in both formats, described to programs, and no number of days anywhere."""
    tiny, package = published
    assert not failures_of(verify(package, [str(tiny.site.officer)]))
    assert frictionless.validate(str(package / "datapackage.json")).valid
    schema = pyarrow.parquet.read_schema(package / "data.parquet")
    assert (schema.field("income").type, schema.field("rent").type) == (pa.date32(), pa.timestamp("ms"))
    text, table = pd.read_csv(package / "data.csv", dtype=str), pyarrow.parquet.read_table(package / "data.parquet")
    assert text["income"].dropna().str.fullmatch(r"20[01][0-9]-[0-9]{2}-[0-9]{2}").all()
    assert text["rent"].str.fullmatch(r"2020-01-[0-9]{2}T[0-9]{2}:(00|15|30|45):00").all()
    assert [None if day is None else day.isoformat() for day in table["income"].to_pylist()] == [
        None if pd.isna(day) else day for day in text["income"]
    ]
    assert [moment.isoformat() for moment in table["rent"].to_pylist()] == text["rent"].tolist()
    assert set(text["income_missing"].dropna()) == {"open", "blank"}
    fields = {
        field["name"]: field
        for field in json.loads((package / "datapackage.json").read_text())["resources"][0]["schema"]["fields"]
    }
    assert fields["income"]["type"] == "date"
    assert fields["income"]["constraints"] == {"minimum": "2000-01-01", "maximum": "2019-12-31"}
    assert (fields["rent"]["type"], fields["rent"]["format"]) == ("datetime", "%Y-%m-%dT%H:%M:%S")
    counts = pd.read_csv(package / "data.counts.csv", dtype=str)
    ends = counts.loc[counts["column"] == "income", ["first", "last"]].to_numpy().ravel()
    assert all(end.startswith(("20", "missing: ")) for end in ends)


def test_an_analyst_reads_dates(published: tuple[TinySite, Path]) -> None:
    """Means and quantiles of the confidential table lie in their intervals, and are dates."""
    _, package = published
    release, rows = read_release(package), [row for row in make_records() if row["year"] == "1"]
    days = np.array([row["income"] for row in rows if row["income"] not in ("", "9999-12-31")], dtype="datetime64[D]")
    moments = np.array([row["rent"] for row in rows], dtype="datetime64[s]")
    assert release.data["income"].dtype == "datetime64[D]"
    assert release.data["rent"].dtype == "datetime64[s]"
    for name, truth in (("income", days), ("rent", moments)):
        whole = truth.astype("datetime64[s]").astype(np.int64)
        mean, median = release.mean(name, level=SURE), release.quantile(name, 0.5, level=SURE)
        assert isinstance(mean, Moments)
        for found, exact in ((mean, int(whole.mean())), (median, int(np.quantile(whole, 0.5, method="inverted_cdf")))):
            slack = np.timedelta64(8, "m")  # of rounding to the grid
            assert np.datetime64(found.low) - slack <= np.datetime64(exact, "s") <= np.datetime64(found.high) + slack
        assert mean.width < timedelta(days=1500)
    assert type(release.mean("income").estimate) is date
    share = release.share("income", "2000-01-01", date(2009, 12, 31), level=SURE)
    assert share.low <= float(np.mean(days < np.datetime64("2010-01-01"))) * len(days) / len(rows) <= share.high
    for sex in ("0", "1"):
        mine = moments[[row["sex"] == sex for row in rows]].astype(np.int64)
        found = release.table("when").mean({"sex": sex}, level=SURE)
        assert np.datetime64(found.low) <= np.datetime64(int(mine.mean()), "s") <= np.datetime64(found.high)
    with pytest.raises(InvalidArgument, match="something else stands there"):
        release.share("income", 0, 10)


METHODS = {
    "dp-um": "{method: dp-um, epsilon: 4, k: 5}",
    "dp-cdf": "{method: dp-cdf, epsilon: 4, k: 5}",
    "dp-mdav": "{method: dp-mdav, epsilon: 4, k: 5, order: hilbert, scope: centroid}",
    "k-epsilon": "{method: k-epsilon, grouping: ola, k: 5, epsilon: 4}",
}


def parse(**parts: str) -> Policy:
    """The policy of two columns of dates."""
    return parse_policy(policy_text(**{"columns": PLAIN, **parts}), name="people.yaml")


@pytest.mark.parametrize("method", METHODS)
def test_every_numeric_method_masks_them(tmp_path: Path, method: str) -> None:
    """Released values are days of the domain, and not those of the source."""
    columns = PLAIN
    if method == "k-epsilon":
        for name, values in (("town", "north, south, east"), ("sex", '"0", "1"')):
            old = next(line for line in columns.splitlines() if line.strip().startswith(f"{name}:"))
            columns = columns.replace(old, f"  {name}: {{role: quasi, do: generalise, hierarchy: {{groups: [{values}]}}}}")
    rows = [{**row, "income": "2003-03-03" if row["income"] == "9999-12-31" else row["income"]} for row in make_records()]
    tiny = make_site(tmp_path / "site", rows=rows, columns=columns, protect=METHODS[method])
    masked = mask_table(parse(columns=columns, protect=METHODS[method]), tiny.home / "people.csv", release="1").table
    assert masked.schema.field("income").type == pa.date32()
    days = masked["income"].to_pylist()
    assert all(FIRST <= day <= LAST for day in days)
    delivered = sorted(row["income"] or "2005-07-01" for row in rows if row["year"] == "1")
    assert sorted(day.isoformat() for day in days) != delivered


def make_raw(connection: duckdb.DuckDBPyConnection, cells: list[Any], kind: str) -> RawTable:
    """The table `raw` with one column that is delivered so."""
    create_macros(connection)
    connection.execute(f"CREATE OR REPLACE TABLE raw (rent {kind})")
    connection.executemany("INSERT INTO raw VALUES (?)", [[cell] for cell in cells])
    return RawTable(connection, "test")


def read_rent(raw: RawTable) -> npt.NDArray[np.float64]:
    """The numbers that a method gets."""
    column = typed_column(parse(), "rent", raw)
    assert column is not None
    return column.to_numpy(zero_copy_only=False)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(
    moments=st.lists(st.datetimes(datetime(2019, 6, 1), datetime(2020, 6, 1)), min_size=1, max_size=6),
    other=st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    place=st.integers(0, 5),
)
def test_a_method_gets_numbers_that_are_functions_of_one_record(moments: list[datetime], other: datetime, place: int) -> None:
    """However they are delivered: minutes since the first of the domain, by Python's calendar. Replacing a record replaces one
    number, and on the grid by no more than its width, on which all claims about numbers rest."""
    exact = [(moment - datetime(2020, 1, 1)) // timedelta(minutes=1) for moment in moments]
    utc = [pd.Timestamp(moment, tz="UTC") for moment in moments]
    with duckdb.connect() as connection:
        for kind, cells in (
            ("VARCHAR", [moment.isoformat() for moment in moments]),
            ("VARCHAR", [f"{moment.isoformat(' ')}Z" for moment in moments]),
            ("TIMESTAMP", moments),
            ("TIMESTAMP_NS", moments),
            ("TIMESTAMP WITH TIME ZONE", [moment.tz_convert("Europe/Berlin").to_pydatetime() for moment in utc]),
        ):
            assert read_rent(make_raw(connection, cells, kind)).tolist() == exact, kind
        changed = [*moments]
        changed[place % len(moments)] = other
        after = read_rent(make_raw(connection, changed, "TIMESTAMP"))
    grid = parse().noise_columns["rent"].exact_grid
    moved = grid.quantise(after) - grid.quantise(np.array(exact, dtype=np.float64))
    assert np.count_nonzero(moved) <= 1
    assert np.abs(moved).max() <= grid.width


@pytest.mark.parametrize(
    ("kind", "cell", "words"),
    [
        ("VARCHAR", "31.01.2020 MARGRET", "up to 10 records where something else than a date stands"),
        ("VARCHAR", "2020-01-05T10:00+02:00", "up to 10 records where something else than a date stands"),
        ("TIMESTAMP", "infinity", "up to 10 records where something else than a date stands"),
        ("BIGINT", 43831, "is of type number, not a date. Deliver dates as dates"),
        ("DATE", "2021-06-01", "up to 10 of 40 records outside the declared domain (none below, up to 10 above), and at most 1%"),
    ],
)
def test_what_is_no_date_stops_a_release_by_its_count(kind: str, cell: str | int, words: str) -> None:
    """And never by what stands there."""
    good: list[Any] = [cell] * 39 if kind in ("BIGINT", "TIME") else [f"2020-01-{1 + day % 28:02}" for day in range(39)]
    with duckdb.connect() as connection:
        raw = make_raw(connection, [*good, cell], kind)
        said = " ".join(refusals(check_facts(collect_facts(parse(), raw, None), parse())))
    assert words in said
    assert not cell or str(cell) not in said.replace("2020-01-31T09:30", "")
