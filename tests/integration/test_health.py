"""Whether a site is well: through the command line, with every way to be unwell."""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from release_pipeline.apps.cli import main
from release_pipeline.apps.dagster.launch import prepare
from release_pipeline.apps.dagster.runs import read_heartbeat
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.operate import health
from release_pipeline.operate.alerts.look import look
from release_pipeline.operate.health import LEAST_FREE, LONGEST_SILENCE, HealthDocument, check_health
from release_pipeline.pipeline.context import record_failed_run
from release_pipeline.pipeline.release import run_release
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from tests.integration.people import copy_site
from tests.integration.sites import GX_WARNINGS, TinySite, make_rows, make_site, spoil

pytestmark = GX_WARNINGS

NOW = datetime.now(UTC)
RULES = "alerts:\n  - {on: [failed], webhook: 'https://a.example'}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A candidate, a release that is blocked, a run that broke off."""
    tiny = make_site(tmp_path_factory.mktemp("health") / "office", rows=make_rows(releases=("1", "2")))
    run_release(tiny.flow("1"))
    spoil(tiny, "out of domain", make_rows(releases=("2",)))
    with pytest.raises(ReleasePipelineError):
        run_release(tiny.flow("2"))
    record_failed_run(tiny.site, ReleaseId("people", "2"), "it failed.", run="abc")
    return tiny.home


@pytest.fixture
def tiny(made: Path, tmp_path: Path) -> TinySite:
    """The same site, to be changed."""
    return copy_site(made, tmp_path / "office")


def check(site: Site, beat: datetime | None = None) -> HealthDocument:
    """How the site is, with a daemon that said last then that it lives."""
    return check_health(site, heartbeat=lambda: beat, now=NOW)


def unwell(found: HealthDocument) -> dict[str, str]:
    """What is not as it should be."""
    assert found.ok == all(one.ok for one in found.checks)
    return {one.name: one.words for one in found.checks if not one.ok}


def test_a_site_that_is_well(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """In words and as JSON, with the exit code; a new site too."""
    home = ["--home", str(tiny.home)]
    assert main(["status", "--health", *home]) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["ok", name] for name in ("registry", "chain", "vault", "disk", "daemon")
    ]
    assert main(["status", "--health", "--json", *home]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    new = make_site(tiny.home.parent / "new")
    assert unwell(check(new.site)) == {}


def test_every_way_to_be_unwell_is_told(
    tiny: TinySite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One thing at a time, with exit code 1."""
    tiny.site.vault.chmod(0o750)
    assert unwell(check(tiny.site)) == {"vault": "other accounts may look into it: chmod 700 vault"}
    assert main(["status", "--health", "--home", str(tiny.home)]) == 1
    assert "NOT OK  vault" in capsys.readouterr().out
    tiny.site.vault.chmod(0o700)
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=LEAST_FREE - 1))
    assert list(unwell(check(tiny.site))) == ["disk"]
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=LEAST_FREE))
    assert unwell(check(tiny.site)) == {}
    shutil.move(tiny.site.vault / "key", tiny.home / "key")
    assert set(unwell(check(tiny.site))) == {"registry", "vault"}
    shutil.move(tiny.home / "key", tiny.site.vault / "key")
    shutil.move(tiny.site.vault, tiny.home / "elsewhere")
    assert unwell(check(tiny.site))["vault"] == "it is gone: restore it from a backup"


def test_an_older_pair_of_vault_and_registry_is_found_by_what_the_last_look_saw(tiny: TinySite, tmp_path: Path) -> None:
    """Both put back together fit each other; the look knew more."""
    older = copy_site(tiny.home, tmp_path / "older")
    (tiny.home / "site.yaml").write_text(RULES)
    record_failed_run(tiny.site, ReleaseId("people", "2"), "it failed.", run="def")
    look(tiny.site)
    assert unwell(check(tiny.site)) == {}
    for name in ("vault", "registry.duckdb"):
        target = tiny.home / name
        shutil.rmtree(target) if target.is_dir() else target.unlink()
        shutil.move(older.home / name, target)
    [(name, words)] = unwell(check(tiny.site)).items()
    assert (name, "is not there any more" in words) == ("chain", True)


def test_a_daemon_is_missed_where_something_waits_for_it(tmp_path: Path) -> None:
    """A timetable; without one nobody waits."""
    tiny = make_site(tmp_path / "office")
    silent = NOW - LONGEST_SILENCE - timedelta(seconds=1)
    assert unwell(check(tiny.site, silent)) == {}
    tiny.write_policy(releases='{list: ["1"], cron: "0 6 1 * *"}')
    assert list(unwell(check(tiny.site, silent))) == ["daemon"]
    assert unwell(check(tiny.site, NOW - LONGEST_SILENCE)) == {}
    assert unwell(check(tiny.site, None)) == {}


@pytest.mark.slow
def test_the_heartbeat_is_read_from_the_sites_dagster(tmp_path: Path) -> None:
    """None without one, the last one with it; what cannot be read is told in words."""
    tiny = make_site(tmp_path / "office")
    assert read_heartbeat(tiny.site) is None
    assert not tiny.site.dagster_home.exists()
    prepare(tiny.site)
    assert read_heartbeat(tiny.site) is None
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    with dg.DagsterInstance.from_config(str(tiny.site.dagster_home)) as instance:
        for kind, later in (("SENSOR", 5), ("SCHEDULER", 0)):
            instance.add_daemon_heartbeat(DaemonHeartbeat(moment.timestamp() + later, kind, "x"))
    assert read_heartbeat(tiny.site) == moment + timedelta(seconds=5)
    [records] = tiny.site.dagster_home.rglob("runs.db")
    with sqlite3.connect(records) as connection:
        connection.execute("ALTER TABLE daemon_heartbeats RENAME TO kanarie")
    with pytest.raises(ReleasePipelineError, match="Dagster's own records cannot be opened"):
        read_heartbeat(tiny.site)
    (tiny.site.dagster_home / "dagster.yaml").write_text("storage: {kanarie: 1}\n")
    with pytest.raises(ReleasePipelineError, match="Dagster's own records cannot be opened") as refused:
        read_heartbeat(tiny.site)
    assert "kanarie" not in refused.value.in_full
