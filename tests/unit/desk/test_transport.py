"""The socket between web process and backend: whatever is sent, the backend answers a call or refuses, and goes on answering."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from release_pipeline.apps.desk.backend.calls import File
from release_pipeline.apps.desk.backend.protocol import LONGEST, CallRequest
from release_pipeline.apps.desk.backend.server import serving_backend
from release_pipeline.apps.desk.backend.service import Answer, Backend
from release_pipeline.apps.desk.web.frame import BackendAnswer, Client, Credentials
from release_pipeline.apps.door import Refused
from tests.guards import HANGING


class Echo:
    """In the place of the backend: says what was asked; `slow` waits until it is let go on, `file` gives one."""

    def __init__(self, file: Path | None = None) -> None:
        self.go_on, self.file = threading.Event(), file
        self.seen: list[CallRequest] = []

    def answer(self, request: CallRequest) -> Answer:
        self.seen.append(request)
        if request.call == "slow":
            assert self.go_on.wait(HANGING)
        if request.call == "file" and self.file is not None:
            return Answer(200, file=File("text/plain", self.file, name="ä.txt", temporary=True, facts={"style": ["x"]}))
        return Answer(200, {"call": request.call, "body": len(request.body), "odd": "\ud800"})


@contextmanager
def serving(path: Path, echo: Echo, accounts: frozenset[int] = frozenset()) -> Iterator[None]:
    """A server of it."""
    with serving_backend(path, cast("Backend", echo), accounts):
        try:
            yield
        finally:
            echo.go_on.set()


def ask(path: Path, call: str, *given: Any) -> BackendAnswer:
    """What the web process is answered."""
    return asyncio.run(Client(path).ask(call, *given))


def post(path: Path, content: bytes, head: bytes | None = None) -> bytes:
    """The answer to bytes that are posted by hand."""
    with connect(path) as connection, suppress(BrokenPipeError, ConnectionResetError):
        length = b"Content-Length: %d\r\n" % len(content)
        start = b"POST / HTTP/1.1\r\nHost: desk\r\nConnection: close\r\n"
        connection.sendall((start + length + b"\r\n" if head is None else head) + content)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))
    return b""


def connect(path: Path) -> socket.socket:
    """A connection by hand."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(HANGING)
    connection.connect(str(path))
    return connection


def test_a_call_and_a_file_come_through_a_socket(tmp_path: Path) -> None:
    """Half a letter, which no encoding has, comes as another; a file that was made for one answer is gone after it."""
    (tmp_path / "made").mkdir()
    file = tmp_path / "made" / "file"
    file.write_bytes(b"x" * 3_000_000)
    echo = Echo(file)

    async def fetch() -> tuple[BackendAnswer, bytes]:
        told = await Client(tmp_path / "s").ask("file")
        assert told.file is not None
        return told, await told.file.aread()

    with serving(tmp_path / "s", echo):
        told = ask(tmp_path / "s", "home", Credentials("s", "p", (("a", "b"),)), {"c": "d"}, "body")
        assert (told.status, told.document) == (200, {"call": "home", "body": 4, "odd": "?"})
        assert echo.seen == [CallRequest("home", {"c": "d"}, "body", "s", "p", (("a", "b"),))]
        given, content = asyncio.run(fetch())
        assert (given.status, given.name, given.facts, len(content)) == (200, "ä.txt", {"style": ["x"]}, 3_000_000)
        wait_until(lambda: not file.parent.exists())


def wait_until(happened: Any) -> None:
    """Or fail."""
    end = time.monotonic() + HANGING
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_is_too_long_is_not_even_asked(tmp_path: Path) -> None:
    """The web process says so, and the backend reads no more than that either."""
    with serving(tmp_path / "s", Echo()):
        with pytest.raises(Refused, match="longer") as refused:
            ask(tmp_path / "s", "home", Credentials(), {}, "x" * LONGEST)
        assert refused.value.status == 413
        assert ask(tmp_path / "s", "home", Credentials(), {}, "x" * (LONGEST - 1000)).document["body"] == LONGEST - 1000
        assert post(tmp_path / "s", b" " * (LONGEST + 1))[:12] in (b"HTTP/1.1 413", b"")
        assert ask(tmp_path / "s", "home").status == 200


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"{", b"[]", b"1", b"null", b"\xff\xfe", b"[" * 60_000, b'{"a":' * 12_000, b'{"call": "\\ud800"}'],
    ids=range(10),
)
def test_what_is_no_call_is_refused(tmp_path: Path, content: bytes) -> None:
    """However deep it is, and without a word of it."""
    with serving(tmp_path / "s", Echo()):
        assert post(tmp_path / "s", content).startswith(b"HTTP/1.1 400")


def test_who_goes_away_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a call or of a file; nothing is printed, and a file that was made for one is gone."""
    (tmp_path / "made").mkdir()
    file = tmp_path / "made" / "file"
    file.write_bytes(b"x" * 10_000_000)
    head = b"POST / HTTP/1.1\r\nHost: desk\r\nContent-Length: 16\r\n\r\n"
    with caplog.at_level(logging.DEBUG), serving(tmp_path / "s", Echo(file)):
        for content in (b"", head[:20], head, head + b'{"call"', head + b'{"call": "file"}'):
            with connect(tmp_path / "s") as gone:
                gone.sendall(content)
        wait_until(lambda: not file.parent.exists())
        assert ask(tmp_path / "s", "home").status == 200
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "reply",
    [b"", b"x\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxx"],
)
def test_a_backend_that_says_nothing_is_told_as_one_that_does_not_answer(tmp_path: Path, reply: bytes) -> None:
    """In words."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(reply)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(Refused, match="does not answer"):
            ask(tmp_path / "s", "home")
        thread.join(HANGING)
    with pytest.raises(Refused, match="does not answer"):
        ask(tmp_path / "none", "home")
