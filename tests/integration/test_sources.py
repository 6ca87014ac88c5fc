"""The doors to a source: the same table through each of them gives the same facts, numbers and kept columns."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pyreadstat
import pytest

from release_pipeline.errors import ReleasePipelineError, SourceError
from release_pipeline.pipeline.ingest import ingest
from release_pipeline.pipeline.reading import collect_facts, count_people, count_releases, needed_columns, release_filter
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.sections import Source
from release_pipeline.rows.checks import match_header
from release_pipeline.store.database import open_delivered
from release_pipeline.store.environment import expand
from release_pipeline.store.source import SourceReader, find_source, open_raw
from tests.guards import HANGING
from tests.integration.sites import make_site

SQL = """
CREATE TABLE {name} AS SELECT
    i AS id, CAST(CASE WHEN i % 2 = 0 THEN 2020 ELSE 2021 END AS INTEGER) AS year,
    i * 7 % 100 AS whole, CAST((i * 37 % 1000) / 4.0 AS NUMERIC(10, 2)) AS exact, (i * 13 % 50) / 8.0 AS half,
    CASE i % 3 WHEN 0 THEN 'north' WHEN 1 THEN 'south' ELSE 'öst, "x"' END AS town,
    i % 3 = 0 AS member, CAST(CASE WHEN i % 4 = 0 THEN '2020-01-31' ELSE '1999-12-01' END AS DATE) AS born,
    CASE WHEN i % 10 = 0 THEN NULL ELSE i % 5 END AS visits
FROM {rows}
"""
POLICY = """
policy: people
steward: ana
population: folk
source: {path: people.csv, release_column: year}
person: {column: id}
releases: ["2020", "2021"]
protect: {method: idp-cbls, epsilon: 3, k: 3}
columns:
  id:     {role: identifier, do: drop}
  whole:  {role: confidential, do: noise, domain: [0, 50], grid: 1, outside: clamp, why: known}
  exact:  {role: confidential, do: noise, domain: [0, 250], grid: 0.25, outside: clamp, why: known}
  half:   {role: confidential, do: noise, domain: [0, 10], grid: 0.125, outside: fail, why: known}
  visits: {role: confidential, do: noise, domain: [0, 4], grid: 1, outside: fail, missing: {fill: 0}, why: known}
  town:   {role: quasi, do: keep, values: [north, south], why: needed}
  member: {role: quasi, do: keep, values: [true, false], why: needed}
  born:   {role: quasi, do: keep, values: ["2020-01-31", "1999-12-01"], why: needed}
gates: {clamped_at_most: 60%}
"""
SURVEYS = ["dta", "sav", "xpt"]
DOORS = [
    *("csv", "semicolons", "parquet", "duckdb", "duckdb schema", "postgres schema", "postgres query"),
    *SURVEYS,
]
QUERY = """
WITH all_of_them AS (SELECT *, 'a; b' <> 'c' AS odd FROM people -- in whatever order
) SELECT id, year, whole, exact, half, town, member, born, visits FROM all_of_them ORDER BY random() -- no bracket )
""".replace("a; b", "a: b")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a Postgres server of our own, with the table `people` in two schemas; it asks for passwords."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("there is no /usr/lib/postgresql/*/bin/initdb (Debian's package postgresql)")
    if os.geteuid() != 0 or not shutil.which("runuser"):
        pytest.skip("only root can start a server as user postgres")
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("there is no user postgres")
    folder = Path(tempfile.mkdtemp(prefix="rp-pg-"))
    os.chown(folder, user.pw_uid, user.pw_gid)

    def as_postgres(program: str, *arguments: str, words: str = "") -> None:
        command = ["runuser", "-u", "postgres", "--", str(found[-1].with_name(program)), *arguments]
        subprocess.run(command, input=words, text=True, check=True, capture_output=True, timeout=HANGING, cwd=folder)

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "password").write_text("s3cretword")
    os.chown(folder / "password", user.pw_uid, user.pw_gid)
    data = str(folder / "data")
    settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    try:
        as_postgres(
            "initdb",
            "-D",
            data,
            "-U",
            "postgres",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(folder / "password"),
            "-E",
            "UTF8",
            "-N",
        )
        # stdout must not stay open in the server, or the call above would wait for it
        as_postgres("pg_ctl", "-D", data, "-o", settings, "-l", str(folder / "log"), "-w", "start")
        address = f"postgresql://postgres:s3cretword@127.0.0.1:{port}/postgres"
        rows = "generate_series(0, 119) AS numbers(i)"
        text = ";".join(["CREATE SCHEMA survey", *(SQL.format(name=name, rows=rows) for name in ("people", "survey.people"))])
        text += ";CREATE SEQUENCE counted"
        as_postgres("psql", address, "-v", "ON_ERROR_STOP=1", "-q", words=f"{text};")
        yield address
    finally:
        subprocess.run(
            ["runuser", "-u", "postgres", "--", str(found[-1].with_name("pg_ctl")), "-D", data, "-m", "immediate", "stop"],
            check=False,
            capture_output=True,
            timeout=HANGING,
            cwd=folder,
        )
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def delivered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same table in every kind of file."""
    folder = tmp_path_factory.mktemp("delivered")
    with duckdb.connect(str(folder / "people.duckdb")) as made:
        made.execute("CREATE SCHEMA survey")
        for name in ("people", "survey.people"):
            made.execute(SQL.format(name=name, rows="range(120) AS numbers(i)"))
        table = made.table("people").to_arrow_table()
    pq.write_table(table, folder / "people.parquet")
    for name, delimiter in (("people.csv", ","), ("semicolons.csv", ";")):
        pyarrow.csv.write_csv(table, folder / name, pyarrow.csv.WriteOptions(delimiter=delimiter))
    write_surveys(table, folder)
    return folder


def write_surveys(table: pa.Table, folder: Path) -> None:
    """The same records as Stata, SPSS and SAS have them; truth values are texts there."""
    import pandas as pd

    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    columns["exact"] = [float(value) for value in columns["exact"]]
    columns["member"] = ["true" if value else "false" for value in columns["member"]]
    columns["visits"] = [float("nan") if value is None else float(value) for value in columns["visits"]]
    frame = pd.DataFrame(columns)
    pyreadstat.write_dta(frame, folder / "people.dta")
    pyreadstat.write_sav(frame, folder / "people.sav", row_compress=True)

    pyreadstat.write_xport(frame, folder / "people.xpt", file_format_version=8)


def source_of(door: str) -> Source:
    """What a policy says of each door."""
    named: dict[str, dict[str, Any]] = {
        "csv": {"path": "people.csv"},
        "semicolons": {"path": "semicolons.csv"},
        "parquet": {"path": "people.parquet"},
        "duckdb": {"path": "people.duckdb", "table": "people"},
        "duckdb schema": {"path": "people.duckdb", "table": "survey.people"},
        "postgres schema": {"postgres": "${ADDRESS}", "table": "survey.people"},
        "postgres query": {"postgres": "${ADDRESS}", "query": QUERY.strip()},
    }
    named |= {ending: {"path": f"people.{ending}"} for ending in SURVEYS}
    return Source(**named[door], release_column="year")


def read(policy: Policy, source: SourceReader, release: str | None) -> dict[str, Any]:
    """Everything that the pipeline reads of a release: facts, counts of releases, numbers, kept columns."""
    names, checks = match_header(source.header, policy)
    assert not any(check.count for check in checks)
    needed = {name: names[name] for name in needed_columns(policy)}
    with open_raw(source, needed, release=release_filter(policy, names, release)) as table:
        facts = collect_facts(policy, table, count_people(policy, table))
        return {
            "records": facts.records,
            "counts": facts.columns,
            "persons": facts.persons,
            "releases": count_releases(policy, source, names),
            "numbers": {name: np.sort(table.numbers(name)).tolist()[:-12] for name in policy.noise_columns},
            "kept": {name: sorted(table.categories(name).to_pylist()) for name in policy.kept_columns},
        }


def address_of(request: pytest.FixtureRequest, door: str) -> Mapping[str, str]:
    """The environment of a source: the server's address only where it is needed, since starting one takes a while."""
    return {"ADDRESS": request.getfixturevalue("server")} if door.startswith("postgres") else {}


@pytest.mark.parametrize("door", DOORS[1:])
def test_every_door_gives_what_the_csv_gives(delivered: Path, request: pytest.FixtureRequest, door: str) -> None:
    """Whole, exact, binary and missing numbers, texts, truth values and dates: the same through each door, release by release."""
    policy = parse_policy(POLICY, name="p.yaml")
    values = address_of(request, door)
    found = [
        [
            read(policy, find_source(source_of(one), folder=delivered, values=values, expected=policy.declared), release)
            for release in ("2020", "2021")
        ]
        for one in ("csv", door)
    ]
    assert found[0] == found[1]
    assert [one["records"] for one in found[1]] == [60, 60]
    assert found[1][0]["kept"]["member"] == ["false"] * 40 + ["true"] * 20
    assert set(found[1][0]["kept"]["born"]) == {"2020-01-31", "1999-12-01"}
    assert found[1][0]["counts"]["town"]["undeclared"] > 0
    assert found[1][0]["counts"]["visits"]["missing"] > 0
    assert found[1][0]["counts"]["whole"]["above"] > 0


@pytest.mark.parametrize(
    ("address", "table"),
    [
        ("postgresql://postgres:wrongword@127.0.0.1:{port}/postgres", "people"),
        ("postgresql://postgres:s3cretword@127.0.0.1:{port}/postgres", "missing"),
        ("postgres-s3cretword-is-no-address", "people"),
    ],
    ids=["password", "table", "address"],
)
def test_what_postgres_refuses_is_one_sentence_without_the_address(server: str, address: str, table: str) -> None:
    """Table and remedy, no address, no password, not even behind the exception."""
    filled = address.format(port=server.rsplit(":", 1)[1].split("/")[0])
    source = Source(postgres="${ADDRESS}", table=table)
    with pytest.raises(SourceError) as refused:
        find_source(source, folder=Path(), values={"ADDRESS": filled}, expected=frozenset())
    assert str(refused.value) == (
        f"Postgres table {table}: the server or the table cannot be read. Check address, rights and table."
    )
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 / (id - id) AS id FROM people",
        "WITH gone AS (DELETE FROM people RETURNING id) SELECT * FROM gone",
        "SELECT * INTO copied FROM people",
        "SELECT nextval('counted') AS id",
        "SELECT 1 AS id) AS delivered WHERE set_config('transaction_read_only', 'off', false) = 'off' -- ",
    ],
)
def test_a_query_reads_and_does_nothing_else(server: str, query: str) -> None:
    """What would change something, is no single question, or fails at a cell is one sentence: no query, no cell, no address."""
    words = ""
    try:
        source = find_source(Source(postgres=server, query=query), folder=Path(), values={}, expected=frozenset())
        with open_raw(source, {"id": "id"}) as table:
            assert table.count_records() < 0, "it was read"
    except SourceError as error:
        words = f"{error} {error.__cause__!r}"
    remedy = "Check address, rights and query: one SELECT, which changes nothing."
    assert words == f"Postgres query: the server or the query cannot be read. {remedy} None"
    people = find_source(Source(postgres=server, table="people"), folder=Path(), values={}, expected=frozenset())
    with open_raw(people, {"id": "id"}) as table:
        assert table.count_records() == 120


def test_what_a_function_does_in_a_query_is_undone(server: str) -> None:
    """Some servers let a function write even so (large objects): nothing is ever committed."""

    def read(query: str) -> list[float]:
        source = find_source(Source(postgres=server, query=query), folder=Path(), values={}, expected=frozenset())
        with open_raw(source, {"id": "id"}) as table:
            return table.numbers("id").tolist()

    with contextlib.suppress(SourceError):
        read("SELECT lo_create(0)::bigint AS id")
    assert read("SELECT count(*) AS id FROM pg_largeobject_metadata") == [0.0]


def test_a_query_gives_its_records_in_one_order(server: str) -> None:
    """Whatever the server's plan, and whatever order it asks for; equal records are the same."""
    query = "SELECT id % 7 AS id, town, NULLIF(half, 0) AS half FROM people ORDER BY random()"
    source = find_source(Source(postgres=server, query=query), folder=Path(), values={}, expected=frozenset())
    found: list[Any] = []
    for _ in range(3):
        with open_raw(source, {"a": "half", "b": "id", "c": "town"}) as table:
            found.append((table.numbers("a").tolist(), table.numbers("b").tolist(), table.categories("c").to_pylist()))
    assert repr(found[0]) == repr(found[1]) == repr(found[2])
    assert sorted(found[0][1]) == sorted(i % 7 for i in range(120))


def test_odd_names_in_postgres_and_duckdb_are_quoted(server: str, tmp_path: Path) -> None:
    """A table's name is a name and never SQL."""
    with duckdb.connect(str(tmp_path / "x.duckdb")) as made:
        made.execute("CREATE TABLE safe AS SELECT 1 AS i")
    for source in (
        Source(postgres=server, table='people"; DROP TABLE people; --'),
        Source(path="x.duckdb", table='safe"; DROP TABLE safe; --'),
        Source(path="x.duckdb", table="(SELECT 1 AS i)"),
    ):
        with pytest.raises(ReleasePipelineError):
            find_source(source, folder=tmp_path, values={}, expected=frozenset())
    assert find_source(Source(path="x.duckdb", table="safe"), folder=tmp_path, values={}, expected=frozenset()).header == ("i",)
    assert "town" in find_source(Source(postgres=server, table="people"), folder=tmp_path, values={}, expected=frozenset()).header


@pytest.mark.parametrize("view", ["read_csv('{}')", "query('SELECT 1 AS i')"])
def test_a_delivered_database_reaches_no_other_file(tmp_path: Path, view: str) -> None:
    """A view is refused, whatever it reads; and DuckDB opens no other file for whatever else the database says."""
    other = tmp_path / "other.csv"
    other.write_text("i\n1\n")
    with duckdb.connect(str(tmp_path / "x.duckdb")) as made:
        made.execute("CREATE TABLE safe AS SELECT 1 AS i; CREATE SCHEMA survey; CREATE TABLE survey.safe AS SELECT 2 AS i")
        made.execute(f"CREATE VIEW survey.odd AS SELECT * FROM {view.format(other)}")  # noqa: S608
        made.execute(f"CREATE MACRO reach() AS TABLE SELECT * FROM read_csv('{other}')")  # noqa: S608
    for table in ("survey.odd", "reach", "reach()", str(other), "duckdb_settings", "temp.safe", "x.safe"):
        with pytest.raises(SourceError, match="has no table"):
            find_source(Source(path="x.duckdb", table=table), folder=tmp_path, values={}, expected=frozenset())
    with open_delivered(tmp_path / "x.duckdb", "SAFE") as connection, open_delivered(tmp_path / "x.duckdb", "survey.safe"):
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM reach()")
        with pytest.raises(duckdb.Error):
            connection.execute("SET enable_external_access = true")


def test_a_parquet_file_that_refers_to_another_is_refused(tmp_path: Path) -> None:
    """Parquet can say that its columns are in other files."""
    pq.write_table(pa.table({"i": [1]}), tmp_path / "other.parquet")
    known = pq.read_metadata(tmp_path / "other.parquet")
    known.set_file_path("other.parquet")
    known.write_metadata_file(str(tmp_path / "x.parquet"))
    source = find_source(Source(path="x.parquet"), folder=tmp_path, values={}, expected=frozenset())
    with pytest.raises(SourceError), open_raw(source, {"i": "i"}):
        pass


def test_names_in_braces_come_from_the_environment() -> None:
    """Every ${NAME} is replaced once; a value is not expanded again; other dollars stay."""
    values = {"A": "x", "B_2": "${A}", "EMPTY": ""}
    assert expand("${A}/${B_2}${EMPTY}/$A/${}/${2}", values) == "x/${A}/$A/${}/${2}"


@pytest.mark.parametrize(("delivered", "table"), [(None, ""), ("a,b\n1", ""), ("no database", "t")])
def test_no_message_has_what_a_name_in_braces_stands_for(tmp_path: Path, delivered: str | None, table: str) -> None:
    """The wrong variable may be named, whose value is an address with a password: the policy's own words stand there."""
    value = f"{tmp_path}/s3cretword.csv"
    if delivered is not None:
        Path(value).write_text(delivered)
    source = Source(path="${WHERE}", table=table or None)
    try:
        found = find_source(source, folder=tmp_path, values={"WHERE": value}, expected=frozenset())
        Path(value).unlink()
        with pytest.raises(SourceError) as refused, open_raw(found, {"a": "a"}):
            pass
        assert found.name == "${WHERE}"
    except SourceError as error:
        words = [str(error), repr(error.__cause__)]
    else:
        words = [str(refused.value), repr(refused.value.__cause__)]
    assert words[0].startswith("${WHERE}: ")
    assert "s3cretword" not in "".join(words)


def test_only_needed_columns_are_ingested(tmp_path: Path) -> None:
    """Dropped columns, the person's apart, never enter the vault."""
    tiny = make_site(tmp_path / "site")
    ingest(tiny.flow())
    assert set(tiny.tables()["raw"].column_names) == {"person", "town", "sex", "income", "rent"}
