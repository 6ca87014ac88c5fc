"""Settings that are tried at the desk: on what a policy believes alone, and for a few seconds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from release_pipeline.desk.backend import exploring
from release_pipeline.flow.exploring.trials import note_look
from tests.integration.desks import ROLES, Browser, OpenDesk, Page, name_people, open_desk
from tests.integration.people import copy_site
from tests.integration.processes import is_running, wait_for
from tests.integration.test_desk_policies import CELLS

SHAPE = "shape: {rows: 2000, columns: {income: {quantiles: {50%: 300, 90%: 700}}}}\n"
FORM = {"method-laplace": "on", "epsilons": "1", "sizes": "", "rows": "500"}


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site whose policy has a shape."""
    tiny = copy_site(candidate, tmp_path / "site")
    name_people(tiny, "{vic: [auditor], otto: [operator], stef: [steward]}")
    file = tiny.home / "policies" / "people.yaml"
    file.write_text(file.read_text() + SHAPE)
    return open_desk(tiny)


def try_settings(browser: Browser, **form: str) -> Page:
    return browser.post("/policies/people/explore", {**FORM, **form})


def stand_in(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """What is started in place of the command."""
    monkeypatch.setattr(exploring, "command_of", lambda *words: [sys.executable, "-c", program, *words])


def test_looks_are_told_and_none_is_begun(desk: OpenDesk) -> None:
    """To whoever may read policies: who looked, when, and at what; the only form is of made-up tables."""
    site = desk.tiny.site
    note_look(site, site.policy("people"), by="ana", on="mask", digest="", compared=["laplace, epsilon 1"])
    for role, person in ROLES.items():
        page = desk.open(person).get("/policies/people/explore")
        assert page.status == 200
        assert "by ana, at a source, which was masked: laplace, epsilon 1" in page.text
        assert not CELLS.search(page.text)
        assert ("Try them" in page.text) == (role == "steward")


def test_its_steward_alone_tries_settings(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a policy that says what its data may look like."""
    stand_in(monkeypatch, "raise SystemExit(9)")
    for person in ("stef", "ben", "olga", "vic", "otto"):
        assert try_settings(desk.open(person)).status == 403
    desk.tiny.write_policy()
    ana = desk.open("ana")
    assert "has no shape" in ana.get("/policies/people/explore").text
    assert try_settings(ana).status == 403


@pytest.mark.parametrize(
    "form",
    [
        {"epsilons": "1;rm"}, {"epsilons": "--on=source"}, {"epsilons": "1,,2"}, {"epsilons": "-1"}, {"epsilons": "1e9"},
        {"sizes": "3.5"}, {"sizes": "x"}, {"rows": "-5"}, {"rows": "1 --on source"}, {"method-nothing": "on"},
        {"method---on=source": "on"},
        {"method-a,b": "on"}, {"epsilons": "1" * 201},
    ],
)  # fmt: skip
def test_only_settings_get_into_the_command(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch, form: dict[str, str]) -> None:
    """What is none is refused in words, and stays in the form; nothing is started."""
    stand_in(monkeypatch, "raise SystemExit(9)")
    monkeypatch.setattr(exploring, "run_command", None)  # nothing calls it
    page = try_settings(desk.open("ana"), **form)
    assert page.status == 400
    assert "What to do:" in page.text


LONG = """\
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("child").write_text(str(child.pid))
time.sleep(600)
"""


@pytest.mark.slow  # it waits until it takes too long
def test_what_takes_long_is_ended_and_told_with_the_command(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it had started; another try is not kept out."""
    monkeypatch.setattr(exploring, "SECONDS", 6)  # until then a busy machine has begun both programs
    stand_in(monkeypatch, LONG)
    ana, before = desk.open("ana"), desk.tiny.events()
    for _ in range(2):
        page = try_settings(ana)
        assert page.status == 409
        assert "takes longer than" in page.text
        command = "release-pipeline explore policies/people.yaml --shape --methods=laplace --epsilons=1 --rows=500"
        assert command in page.text
        assert re.search(r'name="method-laplace" checked', page.text)
        wait_for(lambda: not is_running(int((desk.tiny.home / "child").read_text())))
    assert desk.tiny.events() == before


def test_one_goes_on_at_a_time(desk: OpenDesk) -> None:
    """The machine is for releases."""
    with exploring._busy:
        page = try_settings(desk.open("ana"))
    assert page.status == 409
    assert "another exploration goes on" in page.text


def test_what_fails_is_told_in_its_words(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without where the site lies."""
    stand_in(monkeypatch, f"print('{desk.tiny.home}/policies/people.yaml: <b>no</b>'); raise SystemExit(1)")
    page = try_settings(desk.open("ana"))
    assert page.status == 409
    assert "policies/people.yaml: &lt;b&gt;no&lt;/b&gt;" in page.text
    assert str(desk.tiny.home) not in page.text


@pytest.mark.slow  # the command itself
def test_what_is_found_is_what_the_command_prints(desk: OpenDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the page itself, and how a setting is written; no event, no charge, no look, and nothing is kept."""
    monkeypatch.setattr(exploring, "SECONDS", 300)  # whatever else the machine does
    ana, before = desk.open("ana"), desk.tiny.events()
    page = try_settings(ana)
    assert page.status == 200, page.text
    assert re.search(r"2 +laplace, epsilon 1 +DP, column lists +[0-9.]+ \(", page.text)
    assert "tried on a table made up of the shape in people.yaml; releases of 500 records" in page.text
    assert "explore policies/people.yaml --write --choose N --methods=laplace --epsilons=1</code>" in page.text
    assert not CELLS.search(page.text)
    assert desk.tiny.events() == before
    assert not (desk.tiny.home / "desk" / "explored").exists()
