"""Dagster's own records in Postgres, as docs/operating.md says: real commands, a real server, nothing in SQLite."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
import yaml
from psycopg2 import sql

from release_pipeline.apps.dagster.launch import prepare
from tests.integration.processes import run_program
from tests.integration.sites import ROOT, TinySite, make_rows, make_site
from tests.integration.test_operations import hanging
from tests.integration.test_sources import server  # noqa: F401  a fixture

pytestmark = pytest.mark.slow

VARIABLE = "RELEASE_PIPELINE_DAGSTER_PASSWORD"
PASSWORD = "pa55-of-dagster"  # noqa: S105
MARK = "kanarie"  # no word of the project


@pytest.fixture(scope="module")
def port(request: pytest.FixtureRequest) -> int:
    """Where a server of our own listens, which has the user of the documentation; in CI it has to be there."""
    try:
        address = urlsplit(request.getfixturevalue("server"))
    except pytest.skip.Exception as skipped:
        if os.environ.get("CI"):
            pytest.fail(f"in CI a Postgres server is required: {skipped.msg}")
        raise
    with closing(psycopg2.connect(address.geturl())) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CREATE ROLE dagster LOGIN PASSWORD %s", [PASSWORD])
            cursor.execute("CREATE DATABASE dagster OWNER dagster")
    assert address.port is not None
    return address.port


@pytest.fixture
def tiny(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> TinySite:
    """A site whose Dagster records are to be in an empty database: its instance file with the block of the documentation."""
    with closing(connect(port)) as connection, connection, connection.cursor() as cursor:
        cursor.execute("DROP OWNED BY dagster")
        cursor.execute("CREATE SCHEMA IF NOT EXISTS public")
    rows = [{**row, "name": f"{MARK}{row['name']}", "remark": f"{MARK}{row['remark']}"} for row in make_rows()]
    tiny = make_site(tmp_path / "site", rows=rows)
    prepare(tiny.site)
    with (tiny.site.dagster_home / "dagster.yaml").open("a") as file:
        file.write(documented(port))
    monkeypatch.setenv(VARIABLE, PASSWORD)
    return tiny


def documented(port: int) -> str:
    """The block of docs/operating.md, with the address of our server in the place of the example's."""
    text = (ROOT / "docs" / "operating.md").read_text()
    block = text[text.index("```yaml\nstorage:\n") :].split("```")[1].removeprefix("yaml")
    sentences: dict[str, Any] = yaml.safe_load(block)
    settings = sentences["storage"]["postgres"]["postgres_db"]
    assert settings["password"] == {"env": VARIABLE}
    assert (settings["username"], settings["db_name"], settings["scheme"]) == ("dagster", "dagster", "postgresql+psycopg2")
    settings |= {"hostname": "127.0.0.1", "port": port}
    return yaml.safe_dump(sentences)


def connect(port: int) -> Any:
    """The database of the records, as its owner."""
    return psycopg2.connect(host="127.0.0.1", port=port, user="dagster", password=PASSWORD, dbname="dagster")


def query(port: int, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query on the records."""
    with closing(connect(port)) as connection, connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()


def everything(port: int) -> str:
    """All that is in any table of the records."""
    with closing(connect(port)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        sentences: list[str] = []
        for (name,) in cursor.fetchall():
            cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
            sentences += [repr(row) for row in cursor.fetchall()]
        return "\n".join(sentences)


def command(tiny: TinySite, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of ours in a process of its own."""
    return run_program([*arguments, "--home", tiny.home], environment={**os.environ, "PYTHONPATH": str(ROOT)})


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The message of a command that was refused, with which it ends."""
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    [message] = [line for line in done.stderr.splitlines() if line.startswith("release-pipeline: ")]
    assert done.stderr.endswith(f"{message}\n")
    assert "internal error" not in message
    assert PASSWORD not in done.stdout + done.stderr
    return message


def sqlite_files(tiny: TinySite) -> Iterator[Path]:
    """The files of SQLite that the site has."""
    for file in tiny.home.rglob("*"):
        if file.is_file() and file.read_bytes()[:15] == b"SQLite format 3":
            yield file


def test_run_is_recorded_in_postgres_alone(tiny: TinySite, port: int) -> None:
    """Its row and its events are there, none is in SQLite; the password is in no file, and no cell of the source in a table."""
    done = command(tiny, "run", "people", "--release", "1")
    assert done.returncode == 0, done.stderr
    assert tiny.states() == ["opened", "reserved", "secret", "drawn", "candidate"]
    assert query(port, "SELECT pipeline_name, status, partition FROM runs") == [("release_people", "SUCCESS", "1")]
    kinds = {kind for (kind,) in query(port, "SELECT DISTINCT dagster_event_type FROM event_logs")}
    assert {"PIPELINE_START", "STEP_START", "ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION", "PIPELINE_SUCCESS"} <= kinds
    assert query(port, "SELECT count(*) FROM event_logs")[0][0] > 50
    assert list(sqlite_files(tiny)) == []
    outside = [file for file in tiny.home.rglob("*") if file.is_file()]
    assert not [file for file in outside if PASSWORD.encode() in file.read_bytes()]
    sentences = everything(port)
    assert "people/1/r1" in sentences
    assert MARK not in sentences
    assert PASSWORD not in sentences
    again = command(tiny, "run", "people", "--release", "2")
    assert again.returncode == 0, again.stderr
    assert sorted(query(port, "SELECT status, partition FROM runs")) == [("SUCCESS", "1"), ("SUCCESS", "2")]


def test_run_that_was_killed_is_freed_in_postgres_too(tiny: TinySite, port: int) -> None:
    """Killed in a step: `run` marks it as failed, frees its slot, and goes through without a second charge."""
    with hanging(tiny, "mask") as process:
        process.send_signal(signal.SIGKILL)
    assert query(port, "SELECT status FROM runs") == [("STARTED",)]
    taken = "SELECT count(*) FROM concurrency_slots WHERE run_id IS NOT NULL"
    assert query(port, taken) == [(1,)]
    done = command(tiny, "run", "people", "--release", "1")
    assert done.returncode == 0, done.stderr
    assert sorted(query(port, "SELECT status FROM runs")) == [("FAILURE",), ("SUCCESS",)]
    assert query(port, taken) == [(0,)]
    assert tiny.states() == ["opened", "reserved", "secret", "drawn", "candidate"]
    assert len(tiny.charges()) == 1


def test_server_that_does_not_answer_is_one_message(tiny: TinySite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong password: after the attempts of Dagster one message with the file, exit code 1, nothing begun."""
    monkeypatch.setenv(VARIABLE, "another")
    message = refused(command(tiny, "run", "people", "--release", "1"))
    assert "dagster.yaml" in message
    assert tiny.events() == ()
