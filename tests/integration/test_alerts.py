"""What a real site tells: each thing once and in order, to whom it may concern, and no cell of anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import jsonschema
import pytest

from release_pipeline.apps.cli import main
from release_pipeline.apps.dagster.building import build_defs
from release_pipeline.apps.dagster.names import SiteResource
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.operate.alerts import look
from release_pipeline.operate.alerts import sending as channels
from release_pipeline.operate.alerts import sending as sender
from release_pipeline.operate.alerts.look import TOLD
from release_pipeline.operate.alerts.matters import LATE_AFTER, REFUSED, Alert
from release_pipeline.operate.alerts.outbox import NotSent, folder_of
from release_pipeline.operate.timetable import record_policies
from release_pipeline.pipeline.context import record_failed_run
from release_pipeline.pipeline.opening import open_release
from release_pipeline.pipeline.release import run_release
from release_pipeline.policy.documents import to_json
from release_pipeline.store.registry import ReleaseId
from tests.integration.people import copy_site
from tests.integration.sites import GX_WARNINGS, ROOT, TinySite, make_rows, make_site, spoil
from tests.leaks import find_canaries, read_blobs

pytestmark = GX_WARNINGS

ALL = "alerts:\n  - {on: [failed, blocked, waiting, late, cap], webhook: 'https://all.example'}\n"
CANARIES = ("Kanarienvogel", "Zaunkoenig", "87654321")
Sent = list[tuple[str, Alert]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """What webhooks get, instead of the network; an address with `down` in it takes nothing."""
    got: Sent = []

    def post(address: str, alert: Alert) -> None:
        if "down" in address:
            raise NotSent("it answered 503.")
        validate(to_json(alert))
        got.append((address, alert))

    monkeypatch.setattr(channels, "post", post)
    return got


def validate(document: Mapping[str, Any]) -> None:
    """It is what the schema that ships says."""
    schema = json.loads((ROOT / "release_pipeline" / "schemas" / "alert-1.json").read_text())
    jsonschema.Draft202012Validator({**schema, "additionalProperties": False}).validate(document)


def say(tiny: TinySite, text: str) -> None:
    """Write site.yaml."""
    (tiny.home / "site.yaml").write_text(text)


def ids(sent: Sent) -> list[str]:
    """What was sent, in order."""
    return [alert.id for _, alert in sent]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A candidate, a release that is blocked, a run that broke off; canaries in the source."""
    rows = make_rows(releases=("1", "2", "3"))
    rows = [{**row, "name": CANARIES[0], "remark": CANARIES[1]} for row in rows]
    tiny = make_site(tmp_path_factory.mktemp("alerts") / "office", rows=rows, releases='["1", "2", "3"]')
    run_release(tiny.flow("1"))
    tiny.write_rows([{**row, "income": CANARIES[2]} if row["year"] == "2" and row["sex"] == "1" else row for row in rows])
    with pytest.raises(ReleasePipelineError):
        run_release(tiny.flow("2"))
    open_release(tiny.site, "people", "3").check_may_begin()
    record_failed_run(tiny.site, ReleaseId("people", "3"), "people__ingested: it failed.", run="abc")
    return tiny.home


@pytest.fixture
def tiny(made: Path, tmp_path: Path) -> TinySite:
    """The same site, to be changed."""
    return copy_site(made, tmp_path / "office")


def test_each_thing_is_told_once_and_in_order(tiny: TinySite, sent: Sent) -> None:
    """What stands when somebody is first named, in the order in which it happened; then nothing, until something happens."""
    say(tiny, ALL)
    sender.send_alerts(tiny.site)
    kinds = [(alert.kind, alert.release, alert.waits_for) for _, alert in sent]
    assert kinds == [
        ("waiting", "people/1/r1", "review"),
        ("blocked", "people/2/r1", None),
        ("failed", "people/3/r1", None),
    ]
    blocked = sent[1][1]
    assert blocked.reason_code is None
    assert "30 records" in str(tiny.status("2").reason)
    assert blocked.words == REFUSED
    assert blocked.site == "office"
    assert sent[2][1].words == "people__ingested: it failed."
    sender.send_alerts(tiny.site)
    assert len(sent) == 3
    record_failed_run(tiny.site, ReleaseId("people", "3"), "people__ingested: it failed.", run="def")
    sender.send_alerts(tiny.site)
    assert [alert.kind for _, alert in sent[3:]] == ["failed"]
    assert len(set(ids(sent))) == 4


@pytest.mark.slow
def test_what_was_over_before_anybody_was_named_is_not_told(tiny: TinySite, sent: Sent) -> None:
    """A block that is gone by the first look; one that comes and goes between two looks is told."""
    spoiled = (tiny.home / "people.csv").read_text()
    tiny.write_rows(make_rows(releases=("1", "2", "3")))
    run_release(tiny.flow("2"))
    say(tiny, ALL)
    sender.send_alerts(tiny.site)
    assert [alert.kind for _, alert in sent] == ["waiting", "failed", "waiting"]
    (tiny.home / "people.csv").write_text(spoiled)
    spoil(tiny, "out of domain", make_rows(releases=("3",)))
    with pytest.raises(ReleasePipelineError):
        run_release(tiny.flow("3"))
    tiny.write_rows(make_rows(releases=("1", "2", "3")))
    run_release(tiny.flow("3"))
    sender.send_alerts(tiny.site)
    assert [(alert.kind, alert.release) for _, alert in sent[3:]] == [("blocked", "people/3/r1"), ("waiting", "people/3/r1")]


@pytest.mark.parametrize("where", ["put", "_append"])
def test_a_crash_loses_nothing(tiny: TinySite, sent: Sent, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Between the queue and the list of what was told: the same thing under the same id, and only that once more."""
    say(tiny, ALL)

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(look.Outbox if where == "put" else look, where, die)
        with pytest.raises(KeyboardInterrupt):
            look.look(tiny.site)
    sender.send_alerts(tiny.site)
    assert [alert.kind for _, alert in sent] == ["waiting", "blocked", "failed"]


def test_a_timetable_that_is_not_kept_is_told_once(tmp_path: Path, sent: Sent) -> None:
    """Not in the minutes in which the daemon opens it; each period by itself; not while the series is held."""
    tiny = make_site(tmp_path / "office", releases='{list: ["1", "2"], cron: "0 6 1 * *"}')
    record_policies(tiny.site)
    say(tiny, ALL)
    due = (datetime.now(UTC).replace(day=1) + timedelta(days=32)).replace(day=1, hour=6, minute=0, second=0, microsecond=0)
    assert look.preview(tiny.site, now=due + LATE_AFTER) == []
    late = due + LATE_AFTER + timedelta(seconds=1)
    [told] = look.look(tiny.site, now=late)
    assert (told.alert.id, told.alert.moment) == ("late/people/1", due.isoformat())
    assert look.look(tiny.site, now=late) == []
    assert main(["hold", "people", "--why", "a doubt", "--home", str(tiny.home)]) == 0
    (folder_of(tiny.site) / TOLD).unlink()
    assert look.preview(tiny.site, now=late) == []


@pytest.mark.parametrize(
    ("cap", "rule", "told"),
    [
        ("epsilon: 3, definition: idp, scope: column", "", ["1 is left, and that is less than is needed for people/2/r1."]),
        ("epsilon: 4, definition: idp, scope: column", "", []),
        ("epsilon: 4, definition: idp, scope: column", ", share: 50%", ["50% or more."]),
        ("epsilon: 4, definition: idp, scope: column", ", share: 51%", []),
    ],
)
def test_a_cap_that_is_nearly_spent_is_told(tiny: TinySite, sent: Sent, cap: str, rule: str, told: list[str]) -> None:
    """Where the next release has no room, or a share is reached; once more only under another cap."""
    tiny.write_cap(cap)
    say(tiny, f"alerts:\n  - {{on: [cap]{rule}, webhook: 'https://a.example'}}\n")
    sender.send_alerts(tiny.site)
    sender.send_alerts(tiny.site)
    assert [alert.words.rpartition(": " if not rule else ", ")[2] for _, alert in sent] == told
    assert all((alert.population, alert.release) == ("folk", None) for _, alert in sent)
    tiny.write_cap("epsilon: 3.5, definition: idp, scope: column")
    sender.send_alerts(tiny.site)
    assert len(sent) == len(told) + 1


def test_no_cell_is_told(tiny: TinySite, sent: Sent) -> None:
    """Not in what is sent, nor in what is kept; the search would find one."""
    say(tiny, ALL + "  - {on: [failed, blocked, waiting], webhook: 'https://down.example'}\n")
    sender.send_alerts(tiny.site)
    blobs = read_blobs(tiny.site.dagster_home) | {"sent": json.dumps([str(alert) for _, alert in sent]).encode()}
    assert len([name for name in blobs if name.endswith(".json")]) == 3
    assert find_canaries(blobs, CANARIES) == []
    assert find_canaries({**blobs, "planted": CANARIES[1].encode()}, CANARIES) != []


@pytest.mark.slow
def test_the_daemon_looks_and_never_fails(tiny: TinySite, sent: Sent) -> None:
    """The sensor says what it did, also of a site.yaml that means nothing."""

    def look_once() -> str:
        sensor = build_defs(tiny.home).get_repository_def().get_sensor_def("tell")
        with dg.build_sensor_context(resources={"site": SiteResource(home=str(tiny.home))}) as context:
            return sensor.evaluate_tick(context).skip_message or ""

    assert look_once() == "nothing is told: site.yaml has no 'alerts'."
    say(tiny, ALL)
    assert look_once() == "webhook https://all.example: 3 sent."
    assert look_once() == "webhook https://all.example: 0 sent."
    say(tiny, "alerts:\n  - {on: [never], webhook: 'https://a.example'}\n")
    assert "alerts.0.on: on is a list of what is told" in look_once()
    assert len(sent) == 3


def test_the_command_is_for_cron(tiny: TinySite, sent: Sent, capsys: pytest.CaptureFixture[str]) -> None:
    """--dry-run prints and remembers nothing; the exit code tells whether something is left."""
    home = ["--home", str(tiny.home)]
    assert main(["alert", *home]) == 0
    assert capsys.readouterr().out == "nothing is told: site.yaml has no 'alerts'\n"
    say(tiny, ALL)
    for _ in range(2):
        assert main(["alert", "--dry-run", *home]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in told] == ["waiting", "blocked", "failed"] * 2
    assert all(line.endswith("(to webhook https://all.example)") for line in told)
    assert (sent, (tiny.site.dagster_home / "outbox").exists()) == ([], False)
    assert main(["alert", *home]) == 0
    assert capsys.readouterr().out == "webhook https://all.example: 3 sent\n"
    assert main(["alert", "--dry-run", *home]) == 0
    assert capsys.readouterr().out == "nothing is to be told\n"
    say(tiny, "alerts:\n  - {on: [failed], webhook: 'http://down.example'}\n")
    record_failed_run(tiny.site, ReleaseId("people", "3"), "people__ingested: it failed.", run="ghi")
    assert main(["alert", *home]) == 1
    printed = capsys.readouterr()
    assert printed.out == "webhook http://down.example: 0 sent, 1 left: it answered 503.\n"
    assert "warning: webhook http://down.example: what goes there by http can be read" in printed.err
