"""The agent as people begin and end it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from release_pipeline.agent import peers, server
from release_pipeline.cli import main
from release_pipeline.flow.reviewing.bundle import write_bundle
from tests.guards import HANGING
from tests.integration.fake_desks import FakeDesk, open_desk
from tests.integration.people import copy_site

WAYS = {"the whole": ["release_pipeline", "agent"], "the analyst's distribution": ["release_pipeline.agent"]}


@pytest.fixture
def desk() -> Iterator[FakeDesk]:
    """A desk."""
    with open_desk() as desk:
        yield desk


@pytest.fixture
def options(desk: FakeDesk, key_folder: Path, tmp_path: Path) -> list[str]:
    """Ben's machine, on a port that was free a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    (tmp_path / "place").mkdir()
    key = str(key_folder / "ben")
    return ["--desk", desk.origin, "--key", key, "--port", port]


@contextmanager
def begun(words: list[str], options: list[str], place: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The agent in a process of its own, and the address that it prints; what is temporary lies in `place`."""
    command = [sys.executable, "-m", *words, *options]
    environment = {**os.environ, "TMPDIR": str(place)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            printed = [process.stdout.readline(), process.stdout.readline()]
            assert printed[0].startswith("key "), printed
            yield process, re.findall(r"listening at (http://127\.0\.0\.1:[0-9]+/) for http://127", printed[1])[0]
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_one_signature_and_it_is_over(desk: FakeDesk, options: list[str], candidate: Path, tmp_path: Path, way: str) -> None:
    """With --once: it signs, says so at the terminal, ends well by itself, and leaves nothing."""
    tiny = copy_site(candidate, tmp_path / "site")
    bundle, digest = write_bundle(tiny.site, "people/1", tmp_path / "people-1.zip")
    given = desk.tickets[ticket := desk.give(bundle, "ben")]
    with begun(WAYS[way], [*options, "--once"], tmp_path / "place") as (process, address):
        with urlopen(address + "?" + urlencode({"desk": desk.origin, "ticket": ticket}), timeout=HANGING) as page:  # noqa: S310  the agent's address
            text = page.read().decode()
        assert list((tmp_path / "place").rglob("SHA256SUMS"))
        fields = {"token": re.findall(r'name="token" value="([^"]+)"', text)[0], "do": "sign", "verdict": "approve", "why": ""}
        body = urlencode({**fields, "typed": digest[:8]}).encode()
        place = address.rstrip("/") + re.findall(r'action="([^"]+)"', text)[0]
        with urlopen(Request(place, body, {"Origin": address.rstrip("/")}), timeout=HANGING) as done:  # noqa: S310
            assert "Signed, and the desk says that it has it" in done.read().decode()
        printed, wrong = process.communicate(timeout=HANGING)
    assert (process.returncode, wrong) == (0, "")
    assert f"signed: approve of people/1/r1, hash {digest}, by ben; the desk says that it has it" in printed
    assert given.statements[0]["statement"]["hash"] == digest
    assert list((tmp_path / "place").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whoever_stops_it_is_told_what_is_true_then(options: list[str], tmp_path: Path, way: str) -> None:
    """Ctrl-C: nothing is left."""
    with begun(WAYS[way], options, tmp_path / "place") as (process, _):
        process.send_signal(signal.SIGINT)
        _, wrong = process.communicate(timeout=HANGING)
    assert process.returncode == 130
    assert "the agent signs nothing more" in wrong
    assert list((tmp_path / "place").iterdir()) == []


WRONG = {
    "a desk by http": (["--desk", "http://desk.example"], "https alone"),
    "no desk": (["--desk", "desk"], "not the address of a desk"),
    "no key": (["--key", "/nothing"], "there is no such key"),
}


@pytest.mark.parametrize("way", WRONG)
def test_what_cannot_be_begun_is_told_in_words(options: list[str], way: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And what to do."""
    more, words = WRONG[way]
    assert main(["agent", *options, *more]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("port", ["0", "80", "65536", "x", "-1", "8797.5", "٨٧٩٧"])
def test_ports_are_numbers_that_anybody_may_use(options: list[str], port: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Others are wrong usage."""
    try:
        code = main(["agent", *options, "--port", port])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert "65535" in capsys.readouterr().err


@pytest.mark.parametrize("told", [True, False])
def test_where_nobody_says_whose_a_connection_is_the_agent_says_so(
    options: list[str], told: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before it answers anything."""
    monkeypatch.setattr(peers, "can_tell", lambda: told)
    monkeypatch.setattr(server.Agent, "serve_forever", lambda *_, **__: None)
    assert main(["agent", *options]) == 0
    assert ("every account of this machine can make the agent sign" in capsys.readouterr().out) is not told
