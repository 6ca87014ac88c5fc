"""Many at once, slow ones, and too much: the desk goes on answering those who ask for pages."""

from __future__ import annotations

import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import cast
from urllib.parse import urlencode

import pytest

from release_pipeline.desk.tokens import make_token
from release_pipeline.desk.web.frame import LONGEST_LOGIN, LONGEST_UNKNOWN
from release_pipeline.door.serving import MOST_CONNECTIONS
from tests.guards import HANGING
from tests.integration.desks import RELEASE, Browser, Direct, OpenDesk, open_desk, serving_desk, serving_pages
from tests.integration.people import copy_site

pytestmark = pytest.mark.slow
READERS = 20


def get(port: int, browser: Browser, path: str) -> tuple[int, bytes]:
    """A page, over a real connection."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)) as connection:
        [cookie] = [f"{name}={value}" for name, value, at in browser.cookies if at == browser.base]
        connection.request("GET", browser.base + path, headers={"Cookie": cookie})
        answer = connection.getresponse()
        return answer.status, answer.read()


def test_readers_read_while_a_run_goes_on(candidate: Path, tmp_path: Path) -> None:
    """Twenty at a time, all over the desk, get their pages: none is told to come again, and the run is not disturbed."""
    tiny = copy_site(candidate, tmp_path / "site")
    with serving_desk(tiny, tmp_path / "socket") as desk, serving_pages(desk) as port:
        browsers = [desk.open(name) for name in ("ben", "cleo", "olga", "vic")]
        running = threading.Thread(target=tiny.flow("2").run)
        running.start()
        paths = ("/", "/releases", f"/releases/{RELEASE}", f"/releases/{RELEASE}/report")
        with ThreadPoolExecutor(READERS) as readers:
            seen: list[tuple[int, bytes]] = []
            while True:
                alive = running.is_alive()
                asks = [(port, browsers[number % 4], paths[number // 4 % 4]) for number in range(2 * READERS)]
                seen += readers.map(lambda one: get(*one), asks)
                if not alive:
                    break
        running.join(HANGING)
        assert {status for status, _ in seen} == {200}
        assert tiny.status("2").state == "candidate"


def test_slow_connections_keep_nobody_out(candidate: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """More than the desk keeps, which never finish their requests, in the head and in the body: people log in meanwhile, and the
    log has nothing of those that were ended."""
    tiny = copy_site(candidate, tmp_path / "site")
    with serving_desk(tiny, tmp_path / "socket") as desk, serving_pages(desk) as port, ExitStack() as open_ones:
        ben, token = desk.open("ben"), make_token(tiny.site, "cleo")
        host = f"127.0.0.1:{port}"
        head = f"POST /login HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: 1000\r\n"
        slow = [
            open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=HANGING))
            for _ in range(MOST_CONNECTIONS + 50)
        ]
        for number, connection in enumerate(slow):
            with suppress(OSError):  # the first ones are closed already
                connection.sendall(head.encode() if number % 2 else f"{head}\r\ntoken=".encode())
        assert log_in(port, token) == 303
        assert get(port, ben, "/")[0] == 200
        assert sum(is_closed(connection) for connection in slow) >= 50
    assert caplog.text == ""


def log_in(port: int, token: str) -> int:
    """The status that a login has, over a real connection."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)) as connection:
        headers = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/login", urlencode({"token": token}), headers)
        return connection.getresponse().status


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end has closed it."""
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_strangers_make_the_desk_keep_little(desk: OpenDesk) -> None:
    """A form for the login has 4 kB, and one of nobody who is logged in 64 kB; whoever is logged in may send two megabytes."""
    ben, stranger = desk.open("ben"), Browser(desk.desk)
    asked = cast("Direct", desk.client).asked
    for path, size in (("/login", LONGEST_LOGIN), (f"{ben.base}/remarks", LONGEST_UNKNOWN)):
        stranger.cookies = [("release_pipeline_desk", "x" * 43, ben.base)]
        asked.clear()
        assert stranger.send("POST", path, body=b"text=" + b"x" * size).status == 413
        assert asked == (["me"] if path != "/login" else [])
    remark = {"what": "candidate", "subject": RELEASE, "passage": "", "text": "x" * 1_500_000}
    assert "longer than" in ben.post("/remarks", remark).text


@pytest.fixture
def desk(candidate: Path, tmp_path: Path) -> OpenDesk:
    """Without sockets."""
    return open_desk(copy_site(candidate, tmp_path / "site"))


DEEP = (
    b"[" * 30_000,
    b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    b'{"kind": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b"\xff" * 60_000,
)


@pytest.mark.parametrize("body", DEEP, ids=range(len(DEEP)))
def test_deep_and_odd_statements_are_refused_in_words(desk: OpenDesk, body: bytes) -> None:
    """In a page."""
    ben = desk.open("ben")
    page = ben.post("/statements", {"what": "candidate", "subject": RELEASE}, {"a.json": body, "a.json.sig": b"\xff"})
    assert 400 <= page.status < 500
    assert ben.get("/").status == 200
