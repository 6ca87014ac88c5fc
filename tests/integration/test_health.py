"""Whether a site is well, and its figures: through the command line, with every way to be unwell."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._daemon.types import DaemonHeartbeat

from release_pipeline.cli import main
from release_pipeline.dagster_app.heartbeat import read_heartbeat
from release_pipeline.dagster_app.launch import prepare
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.flow.alerts.look import look
from release_pipeline.flow.opening import open_release
from release_pipeline.flow.site import Site
from release_pipeline.flow.status import health
from release_pipeline.flow.status.health import LEAST_FREE, LONGEST_SILENCE, HealthDocument, check_health
from tests.integration.people import copy_site
from tests.integration.sites import GX_WARNINGS, TinySite, make_rows, make_site, spoil

pytestmark = GX_WARNINGS

NOW = datetime.now(UTC)
RULES = "alerts:\n  - {on: [failed], webhook: 'https://a.example'}\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A candidate, a release that is blocked, a run that broke off."""
    tiny = make_site(tmp_path_factory.mktemp("health") / "office", rows=make_rows(releases=("1", "2")))
    tiny.flow("1").run()
    spoil(tiny, "out of domain", make_rows(releases=("2",)))
    with pytest.raises(ReleasePipelineError):
        tiny.flow("2").run()
    open_release(tiny.site, "people", "2").record_failed("it failed.", run="abc")
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
    assert main(["status", "--health", "--metrics", *home]) == 2
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
    monkeypatch.setattr(health, "read_free", lambda _: LEAST_FREE - 1)
    assert list(unwell(check(tiny.site))) == ["disk"]
    monkeypatch.setattr(health, "read_free", lambda _: LEAST_FREE)
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
    open_release(tiny.site, "people", "2").record_failed("it failed.", run="def")
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
    (tiny.site.dagster_home / "dagster.yaml").write_text("storage: {kanarie: 1}\n")
    with pytest.raises(ReleasePipelineError, match="Dagster's own records cannot be opened") as refused:
        read_heartbeat(tiny.site)
    assert "kanarie" not in refused.value.in_full


# metrics


@dataclass
class Family:
    """What a text says of one name."""

    kind: str
    unit: str = ""
    help: str = ""
    samples: dict[tuple[tuple[str, str], ...], float] = field(default_factory=dict)


NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]Inf|NaN")
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def parse(text: str) -> dict[str, Family]:
    """OpenMetrics 1.0 text of gauges and counters, strictly: what the format does not allow is an assertion."""
    assert text.endswith("# EOF\n")
    found: dict[str, Family] = {}
    family, name = Family(""), ""
    for line in text.split("\n")[:-2]:
        if line.startswith("# "):
            _, word, said, *more = line.split(" ", 3)
            if word == "TYPE":
                assert said not in found, f"{said} is interleaved, or stands twice"
                family, name = found.setdefault(said, Family(more[0])), said
                assert re.fullmatch(NAME, said)
                assert more[0] in ("gauge", "counter")
                assert not said.endswith(("_total", "_created", "_bucket", "_count", "_sum", "_info"))
            else:
                assert (word in ("HELP", "UNIT"), said, family.samples) == (True, name, {}), line
                if word == "UNIT":
                    assert said.endswith(f"_{more[0]}")
                    family.unit = more[0]
                else:
                    assert re.fullmatch(r'(?:[^\\"\n]|\\["\\n])*', more[0]), line
                    family.help = more[0]
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample is not None, line
        assert sample[1] == name + ("_total" if family.kind == "counter" else ""), line
        assert NUMBER.fullmatch(sample[3]), line
        labels = tuple(read_labels(sample[2] or ""))
        assert labels not in family.samples, f"{line} stands twice"
        assert len({label for label, _ in labels}) == len(labels)
        value = float(sample[3])
        assert family.kind != "counter" or (value >= 0 and not math.isnan(value))
        family.samples[labels] = value
    assert all(each.help for each in found.values())
    return found


def read_labels(text: str) -> Iterator[tuple[str, str]]:
    """The labels between braces."""
    while text:
        label = LABEL.match(text)
        assert label is not None, text
        yield label[1], re.sub(r"\\.", lambda escape: ESCAPES[escape[0]], label[2])
        text = text[label.end() :]
        assert label[3] == "" or text, "a comma at the end"


def test_the_figures_of_a_site(tiny: TinySite, capsys: pytest.CaptureFixture[str]) -> None:
    """Valid, and what the registry says; no name of a column, no reason, no person."""
    (tiny.home / "site.yaml").write_text(RULES + "lineage: {openlineage: lineage}\n")
    (tiny.home / "policies" / "broken.yaml").write_text("policy: broken\n")
    look(tiny.site)
    open_release(tiny.site, "people", "2").record_failed("it failed.", run="def")
    look(tiny.site)
    capsys.readouterr()
    assert main(["status", "--metrics", "--home", str(tiny.home)]) == 0
    text = capsys.readouterr().out
    found = parse(text)
    people = ("policy", "people")

    def value(name: str, *labels: tuple[str, str]) -> float:
        return found[f"release_pipeline_{name}"].samples[labels]

    assert value("releases", people, ("state", "candidate")) == 1
    assert value("releases", people, ("state", "blocked")) == 1
    assert 0 < value("waiting_seconds", people, ("state", "candidate")) < 24 * 3600
    counted = (("population", "folk"), ("counted", "epsilon"), ("definition", "idp"), ("scope", "column"))
    assert value("cap_spent_ratio", *counted) == 0.2
    assert (value("policies_broken"), value("runs_failed", people)) == (1, 2)
    assert value("chain_events") == len(tiny.events())
    assert (value("unsent", ("to", "alerts 1")), value("unsent", ("to", "lineage"))) == (2, 0)
    assert value("vault_free_bytes") > 0
    assert found["release_pipeline_published_timestamp_seconds"].samples == {}
    assert not any(word in text for word in ("income", "rent", "ana", "it failed", str(tiny.home)))
