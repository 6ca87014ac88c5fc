"""Who comes in to a desk by which link, and the desk of the demo."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from release_pipeline.apps.cli.program import main
from release_pipeline.apps.desk.backend.people import make_token, read_people
from release_pipeline.store.site import Site
from tests.guards import HANGING
from tests.integration.desks import OpenDesk, find_port, open_desk
from tests.integration.people import Demo, copy_site
from tests.integration.sites import ROOT


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Of a site whose release is a candidate."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


def count_tokens(site: Site) -> int:
    """How many tokens were made and not withdrawn."""
    file = site.desk / "tokens.json"
    return len(json.loads(file.read_text())["tokens"]) if file.exists() else 0


def test_a_link_is_for_where_people_reach_the_desk(desk: OpenDesk, capsys: pytest.CaptureFixture[str]) -> None:
    """That of this machine, or of site.yaml, unless another is named; what is none is refused before a token is made."""
    home, before = str(desk.tiny.home), count_tokens(desk.tiny.site)
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
    assert count_tokens(desk.tiny.site) == before + 3


@pytest.mark.slow
def test_one_command_opens_the_demos_desk_and_ends_with_all_that_it_started(finished_demo: Demo, tmp_path: Path) -> None:
    """Links let the five people in; a second desk is refused, by its port or by its socket."""
    home, port = copy_site(finished_demo.home, tmp_path / "demo").home, find_port()
    command = [sys.executable, "-m", "release_pipeline.apps.cli", "desk", "--home", str(home), "--port", str(port)]
    site = Site(home, {})
    assert {"olga", "ana", "ben", "cleo", "vic"} <= set(read_people(site))
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = ""
        while "(stop with Ctrl-C)" not in printed:
            line = process.stdout.readline()
            assert line, process.communicate()[1]
            printed += line
        for name in ("olga", "ana", "ben", "cleo", "vic"):
            token = make_token(site, name)
            given = f"http://127.0.0.1:{port}/login#{token}" if name == "ben" else token  # people paste the whole link, too
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)
            headers = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", "/login", urlencode({"token": given}), headers)
            assert connection.getresponse().status == 303
            connection.close()
        for other, words in ((port, f"another desk or program has port {port}"), (find_port(), "another process answers there")):
            second = subprocess.run(
                [*command[:-1], str(other)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANGING
            )
            assert (second.returncode, words in second.stderr) == (2, True), second.stderr
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANGING)
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(home) not in running
