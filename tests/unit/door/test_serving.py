"""Connections of our web pages: how long they may take, how many there are, and what is said of those that end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from release_pipeline.apps import door as serving
from release_pipeline.apps.door import opened_listener, opened_socket
from release_pipeline.errors import WrongUsage
from tests.guards import HANGING

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
SHORT = 0.2


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers what was sent, or a lot when it is asked for that."""
    request = Request(scope, receive)
    body = await request.body()
    await PlainTextResponse(b"x" * 50_000_000 if scope["path"] == "/much" else body)(scope, receive, send)


@contextmanager
def serving_at(listener: socket.socket) -> Iterator[None]:
    """A server of `echo`."""
    server = uvicorn.Server(serving.configure_server(echo, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    end = time.monotonic() + HANGING
    while not server.started:
        assert time.monotonic() < end
        time.sleep(0.02)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        thread.join(HANGING)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Where the server listens."""
    with opened_socket(tmp_path / "s") as listener, serving_at(listener):
        yield tmp_path / "s"


@contextmanager
def connected(path: Path) -> Iterator[socket.socket]:
    """A connection to it."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANGING)
        connection.connect(str(path))
        yield connection


def is_answered(path: Path) -> bool:
    """Whether a whole request has an answer."""
    with connected(path) as connection:
        connection.sendall(HEAD + b"\r\nhello")
        return connection.recv(1000).startswith(b"HTTP/1.1 200")


def read_to_end(connection: socket.socket) -> bytes:
    """Everything that comes before the other end closes."""
    found = b""
    try:
        while piece := connection.recv(1 << 16):
            found += piece
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize(
    ("limit", "sent"),
    [("HEAD_SECONDS", b""), ("HEAD_SECONDS", HEAD), ("BODY_SECONDS", HEAD + b"\r\nhell")],
    ids=["nothing", "half a head", "half a body"],
)
def test_a_request_that_is_not_finished_ends(path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, sent: bytes) -> None:
    """Nothing is answered; others are answered."""
    monkeypatch.setattr(serving, limit, SHORT)
    with connected(path) as connection:
        connection.sendall(sent)
        assert read_to_end(connection) == b""
    assert is_answered(path)


def test_bytes_that_trickle_in_do_not_put_the_end_off(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more header now and then, for ever; nor does a second request on a connection that has answered one."""
    monkeypatch.setattr(serving, "HEAD_SECONDS", SHORT)
    for first in (b"", HEAD + b"\r\nhello"):
        with connected(path) as connection, pytest.raises(ConnectionError):
            trickle(connection, first + HEAD)


def trickle(connection: socket.socket, first: bytes) -> None:
    """Send this, and header after header."""
    connection.sendall(first)
    end = time.monotonic() + HANGING
    while time.monotonic() < end:
        connection.sendall(b"a: b\r\n")
        time.sleep(SHORT / 4)


def test_an_answer_that_nobody_takes_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed before all of it was sent."""
    monkeypatch.setattr(serving, "TAKING_SECONDS", SHORT)
    with connected(path) as connection:
        connection.sendall(HEAD.replace(b"/ ", b"/much ") + b"\r\nhello")
        time.sleep(3 * SHORT)
        assert len(read_to_end(connection)) < 50_000_000
    assert is_answered(path)


def test_those_that_ask_nothing_make_room(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many half requests are open, a whole one is answered, and the oldest ones are closed."""
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 5)
    with ExitStack() as stack:
        slow = [stack.enter_context(connected(path)) for _ in range(20)]
        for connection in slow[-5:]:
            connection.sendall(HEAD)
        assert is_answered(path)
        for connection in slow[:15]:
            assert read_to_end(connection) == b""


def test_a_socket_is_for_its_account_and_its_group(tmp_path: Path) -> None:
    """It is there while somebody listens; one of a process that died is replaced, one that answers is not."""
    path = tmp_path / "s"
    with opened_listener(1, path):
        assert path.stat().st_mode & 0o777 == 0o660
        with pytest.raises(WrongUsage, match="another process answers there"), opened_socket(path):
            pass
    assert not path.exists()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with opened_socket(path):
        pass
    with pytest.raises(Exception, match="its path is too long"), opened_socket(tmp_path / ("x" * 200)):
        pass


def test_a_socket_is_where_nobody_else_can_put_theirs(tmp_path: Path) -> None:
    """A folder that others write to is refused with what to do."""
    tmp_path.chmod(0o777)
    with pytest.raises(WrongUsage, match="other accounts can write to this folder"), opened_socket(tmp_path / "s"):
        pass
