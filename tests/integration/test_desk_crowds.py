"""Many at once, slow ones, and too much: the desk goes on answering those who ask for pages."""

from __future__ import annotations

import http.client
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from release_pipeline.apps.desk.web.frame import LONGEST_LOGIN, LONGEST_UNKNOWN
from release_pipeline.pipeline.release import run_release
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
        running = threading.Thread(target=partial(run_release, tiny.flow("2")))
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
