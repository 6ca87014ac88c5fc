"""Runs that are started at the desk: of what, by whom, one at a time, and what is told of them."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from release_pipeline.desk.backend import runs
from release_pipeline.flow.holds import hold_series
from release_pipeline.flow.trust.approvals import reject_candidate
from release_pipeline.flow.trust.keys import PrivateKey
from release_pipeline.store.registry import ReleaseId
from tests.guards import HANGING
from tests.integration.desks import OpenDesk, name_people, open_desk
from tests.integration.people import copy_site
from tests.integration.test_desk_policies import CELLS

PEOPLE = "{vic: [auditor], otto: [operator], stef: [steward]}"
WAITING = """\
import pathlib, sys, time
print("at work in", sys.argv[1:], flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
sys.exit(3)
"""


def allow_runs(desk: OpenDesk) -> None:
    file = desk.tiny.home / "site.yaml"
    file.write_text(re.sub(r"desk: .*", f"desk: {{people: {PEOPLE}, runs: true}}", file.read_text()))


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site with a candidate and a release that is open, at which runs may be started."""
    tiny = copy_site(candidate, tmp_path / "site")
    name_people(tiny, PEOPLE)
    desk = open_desk(tiny)
    allow_runs(desk)
    return desk


@pytest.fixture
def end(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Runs do nothing until they are told to end."""
    sign = tmp_path / "end"

    def stand_in(*words: str) -> list[str]:
        return [sys.executable, "-c", WAITING, str(sign), *words]

    monkeypatch.setattr(runs, "command_of", stand_in)

    def end_all() -> None:
        sign.touch()
        await_all(desk)

    yield end_all
    end_all()


def await_all(desk: OpenDesk) -> None:
    """Until no run goes on, and it is noted how each ended."""
    limit = time.monotonic() + HANGING
    while any(run.is_running or run.code is None for run in runs.read_runs(desk.tiny.site).values()):
        assert time.monotonic() < limit
        time.sleep(0.02)


def test_why_each_release_waits_is_told_to_its_steward_and_the_operator(desk: OpenDesk) -> None:
    """With what to do; others are not asked."""
    for person in ("ana", "otto"):
        text = desk.open(person).get("/running").text
        assert "people/1/r1" in text
        assert "Its reviewers decide." in text
        assert "people/2" in text
        assert "Run people/2" in text
        assert not CELLS.search(text)
    assert "There is none." in desk.open("stef").get("/running").text
    for person in ("ben", "olga", "vic"):
        assert desk.open(person).get("/running").status == 403
    desk.tiny.write_policy(steward="ana", gates="{min_rows: 25}")
    (desk.tiny.home / "policies" / "broken.yaml").write_text("steward: ana\n")
    text = desk.open("ana").get("/running").text
    assert "is not approved by the privacy officer as it is now" in text
    assert "Run people/2" not in text
    assert "Its file has faults" in text
    desk.tiny.write_policy()
    hold_series(desk.tiny.site, "people", why="the source is late", by="otto")
    text = desk.open("ana").get("/running").text
    assert "the source is late" in text
    assert "Run people/2" not in text


def test_without_leave_the_command_is_told(desk: OpenDesk) -> None:
    """And nothing is started."""
    name_people(desk.tiny, PEOPLE)
    ana = desk.open("ana")
    text = ana.get("/running").text
    assert "release-pipeline run people --release 2" in text
    assert "Run people/2" not in text
    assert ana.post("/running", {"release": "people/2"}).status == 403
    assert runs.read_runs(desk.tiny.site) == {}


def test_one_run_of_a_release_at_a_time(desk: OpenDesk, end: Callable[[], None]) -> None:
    """Whoever asks, and whichever backend: a second one is refused until the first one ends, and how it ended is told."""
    ana, otto = desk.open("ana"), desk.open("otto")
    page = ana.post("/running", {"release": "people/2"})
    assert page.status == 200
    assert "is being made" in page.text
    assert "ana started it" in page.text
    for browser in (ana, otto, open_desk(desk.tiny).open("otto")):
        page = browser.post("/running", {"release": "people/2"})
        assert page.status == 409
        assert "a run of it goes on" in page.text
        assert "Run people/2" not in browser.get("/running").text
    end()
    page = otto.get("/running")
    assert "ended without success" in page.text
    assert "at work in" in page.text
    assert "Run people/2" in page.text
    assert str(desk.tiny.home) not in page.text
    [run] = runs.read_runs(desk.tiny.site).values()
    assert (run.release, run.by, run.code) == ("people/2", "ana", 3)


def test_a_revision_begins_with_its_reason(desk: OpenDesk, end: Callable[[], None], keys: dict[str, PrivateKey]) -> None:
    """Which is one word of the command, whatever it says; of what a reviewer sent back, and by its steward."""
    ana = desk.open("ana")
    waiting = ana.post("/running", {"release": "people/1/r1", "revise": "yes", "why": "to see how others voted"})
    assert waiting.status == 400
    assert "that its reviewers returned or rejected" in waiting.text
    reject_candidate(desk.tiny.site, ReleaseId("people", "1"), key=keys["dora"], why="no")
    assert desk.open("otto").post("/running", {"release": "people/1/r1", "revise": "yes", "why": "again"}).status == 403
    assert ana.post("/running", {"release": "people/1/r1"}).status == 400
    for why in ("", "  ", "x" * 201, "two\nlines"):
        assert ana.post("/running", {"release": "people/1/r1", "revise": "yes", "why": why}).status == 400
    assert ana.post("/running", {"release": "people/2", "revise": "yes", "why": "wrong"}).status == 400
    assert runs.read_runs(desk.tiny.site) == {}
    why = '--home=/elsewhere; $(touch x) "<b>'
    assert ana.post("/running", {"release": "people/1/r1", "revise": "yes", "why": why}).status == 200
    end()
    [run] = runs.read_runs(desk.tiny.site).values()
    told = "\n".join(run.lines)
    assert run.why == why
    assert "'--release=1'" in told
    assert "'--revise=--home=/elsewhere; $(touch x) \"<b>'" in told
    assert "<b>" not in ana.get("/running").text.replace("<b>What to do", "")


def test_nobody_runs_what_is_not_theirs_or_not_approved(desk: OpenDesk, end: Callable[[], None]) -> None:
    """Other stewards, other roles, releases that nobody declared, policies that are another now, and series that are over."""
    assert desk.open("stef").post("/running", {"release": "people/2"}).status == 404
    for person in ("ben", "olga", "vic"):
        assert desk.open(person).post("/running", {"release": "people/2"}).status == 403
    ana = desk.open("ana")
    for name in ("people/3", "people/2/r1", "crowd/1", "../people/2", "people/--revise", "people/2 "):
        assert ana.post("/running", {"release": name}).status == 404, name
    desk.tiny.write_policy(gates="{min_rows: 25}")
    page = ana.post("/running", {"release": "people/2"})
    assert page.status == 409
    assert "is not approved" in page.text
    assert runs.read_runs(desk.tiny.site) == {}
    end()


def test_not_all_can_run_at_once(
    desk: OpenDesk, end: Callable[[], None], keys: dict[str, PrivateKey], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken over starts no more than a few."""
    monkeypatch.setattr(runs, "MOST_AT_ONCE", 1)
    reject_candidate(desk.tiny.site, ReleaseId("people", "1"), key=keys["dora"], why="no")
    ana = desk.open("ana")
    assert ana.post("/running", {"release": "people/2"}).status == 200
    page = ana.post("/running", {"release": "people/1/r1", "revise": "yes", "why": "again"})
    assert page.status == 409
    assert "go on already" in page.text
    end()


@pytest.mark.slow  # a process that runs a release
def test_a_run_goes_to_its_candidate(desk: OpenDesk) -> None:
    """By the command itself, whose last lines have no cell of the data; then it waits for its reviewers."""
    otto = desk.open("otto")
    assert otto.post("/running", {"release": "people/2"}).status == 200
    limit = time.monotonic() + 10 * HANGING
    while any(run.is_running or run.code is None for run in runs.read_runs(desk.tiny.site).values()):
        assert time.monotonic() < limit
        time.sleep(0.2)
    [run] = runs.read_runs(desk.tiny.site).values()
    assert run.code == 0, run.lines
    assert desk.tiny.status("2").state == "candidate"
    text = otto.get("/running").text
    assert "It went through." in text
    assert "people/2/r1" in text
    assert not CELLS.search(text)
    for file in (desk.tiny.home / "desk" / "runs").iterdir():
        assert not CELLS.search(file.read_text())
