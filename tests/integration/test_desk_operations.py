"""The operator's page: what does not go on and why, what waits, what is kept, who comes in; and the desk of the demo."""

from __future__ import annotations

import http.client
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.apps.desk import demo as desk_demo
from release_pipeline.apps.desk.backend.people import list_tokens
from release_pipeline.apps.desk.demo import prepare_demo_desk, publishing
from release_pipeline.errors import WrongUsage
from release_pipeline.ledger.states import list_statuses
from release_pipeline.store.registry import ReleaseId
from release_pipeline.store.site import Site
from release_pipeline.trust.keys import PrivateKey
from tests.guards import HANGING
from tests.integration.desks import OpenDesk, find_port, open_desk
from tests.integration.people import RELEASE, Demo, copy_site, review
from tests.integration.sites import ROOT

Keys = Mapping[str, PrivateKey]


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site whose release is a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def add_to_site(home: Path, text: str) -> None:
    """More lines of site.yaml."""
    file = home / "site.yaml"
    file.write_text((file.read_text() if file.exists() else "") + text)


def test_the_demos_service_publishes_what_has_all_its_votes(
    candidate: Path, keys: Keys, key_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing before."""
    tiny = copy_site(candidate, tmp_path / "site")
    shutil.copy(key_folder / "robot", tiny.home / "robot")
    add_to_site(tiny.home, "service_key: robot\n")
    monkeypatch.setattr(desk_demo, "_EVERY_SECONDS", 0.01)
    told, done = list[ReleaseId | None](), threading.Event()

    def tell(words: str, release: ReleaseId | None) -> None:
        assert str(RELEASE) in words
        told.append(release)
        done.set()

    review(tiny, dict(keys), "ben")
    with publishing(tiny.site, tell):
        assert not done.wait(0.5)
        review(tiny, dict(keys), "cleo")
        assert done.wait(HANGING)
    assert told == [RELEASE]
    assert list_statuses(tiny.site)[RELEASE].state == "published"


def test_a_link_is_for_where_people_reach_the_desk(desk: OpenDesk, capsys: pytest.CaptureFixture[str]) -> None:
    """That of this machine, or of site.yaml, unless another is named; what is none is refused before a token is made."""
    home, before = str(desk.tiny.home), len(list_tokens(desk.tiny.site))
    assert main(["desk", "token", "ben", "--home", home]) == 0
    assert main(["desk", "token", "ben", "--home", home, "--at", "https://Desk.example.org/"]) == 0
    here, there = capsys.readouterr().out.splitlines()
    assert " http://127.0.0.1:8796/login#" in here
    assert " https://desk.example.org/login#" in there
    file = desk.tiny.home / "site.yaml"
    people = file.read_text()
    file.write_text(people.replace("desk: {", "desk: {address: 'https://desk.example.net', "))
    assert main(["desk", "token", "ben", "--home", home]) == 0
    assert " https://desk.example.net/login#" in capsys.readouterr().out
    file.write_text(people)
    for wrong in ("http://desk.example.org", "https://desk.example.org/login", "desk.example.org"):
        assert main(["desk", "token", "ben", "--home", home, "--at", wrong]) == 2
        assert "--at: " in capsys.readouterr().err
    assert len(list_tokens(desk.tiny.site)) == before + 3


@pytest.mark.slow
def test_one_command_opens_the_demos_desk_and_ends_with_all_that_it_started(finished_demo: Demo, tmp_path: Path) -> None:
    """Every link lets its person in; what is for playing is said to be."""
    home, port = copy_site(finished_demo.home, tmp_path / "demo").home, find_port()
    command = [sys.executable, "-m", "release_pipeline.apps.cli", "desk", "--home", str(home), "--demo", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        while "(stop with Ctrl-C)" not in said:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            said += line
        links = dict(re.findall(r"^  (\w+) \(.*\n.*\n    http://127.0.0.1:\d+/login#(\S+)", said, re.MULTILINE))
        assert set(links) == {"olga", "ana", "ben", "cleo", "vic"}
        for name, token in links.items():
            given = f"http://127.0.0.1:{port}/login#{token}" if name == "ben" else token  # people paste the whole link, too
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)
            headers = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/login", urlencode({"token": given}), headers)
            assert connection.getresponse().status == 303
            connection.close()
        assert "THIS IS FOR PLAYING" in said
        kept = list_tokens(Site(home, {}))
        for other, words in ((port, f"another desk or program has port {port}"), (find_port(), "another process answers there")):
            second = subprocess.run(
                [*command[:-1], str(other)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGING
            )
            assert (second.returncode, words in second.stderr) == (2, True), second.stderr
        assert list_tokens(Site(home, {})) == kept
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANGING)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(home) not in running


def test_only_a_folder_that_the_demo_made_is_played_with(desk: OpenDesk) -> None:
    """A real site gets no people, no policy and no tokens."""
    before = sorted(file.name for file in desk.tiny.home.rglob("*"))
    with pytest.raises(WrongUsage, match="not a folder that the demo"):
        prepare_demo_desk(desk.tiny.site)
    assert sorted(file.name for file in desk.tiny.home.rglob("*")) == before
