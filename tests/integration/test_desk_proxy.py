"""The desk behind a proxy: it says who somebody is, and the backend looks whether it was the proxy."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from release_pipeline.apps.desk.backend.protocol import CallRequest
from release_pipeline.apps.door import ProxyHeaders
from tests.guards import HANGING
from tests.integration.desks import RELEASE, Browser, OpenDesk, open_desk, serving_desk
from tests.integration.people import copy_site
from tests.integration.sites import ROOT

pytestmark = pytest.mark.slow
SECRET = "0123456789abcdef0123456789abcdef"  # noqa: S105
NAME = "desk.example.org"
PROXY = ProxyHeaders(SECRET, "x-desk-secret", "x-forwarded-user", (NAME,))
REMARK = {"what": "candidate", "subject": RELEASE, "passage": "", "text": "why?"}


@pytest.fixture(scope="module")
def desk(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> OpenDesk:
    """Behind the proxy."""
    return open_desk(copy_site(candidate, tmp_path_factory.mktemp("proxy") / "site"), proxy=PROXY)


def come(desk: OpenDesk, person: str, secret: str = SECRET, **more: str) -> Browser:
    """A browser of this person, as the proxy passes it on."""
    said = {"x-desk-secret": secret, "x-forwarded-user": person, **more}
    return Browser(desk.desk, host=NAME, scheme="https", headers=said)


def test_people_are_whom_the_proxy_names(desk: OpenDesk) -> None:
    """With their roles, pages and forms; no cookie is set, and there is no login."""
    ben = come(desk, "ben")
    page = ben.get("/")
    assert "For you, ben" in page.text
    assert not page.header("set-cookie")
    ben.read_token(page)
    assert "Your remark is kept" in ben.post("/remarks", REMARK).text
    assert "why?" not in come(desk, "cleo").get(f"/releases/{RELEASE}").text
    assert come(desk, "otto").get(f"/releases/{RELEASE}/report").status == 403
    assert ben.send("POST", "/login", body=b"token=x").status == 404
    assert desk.backend.answer(CallRequest("enter", {"token": "x"})).status == 404


def test_pages_are_served_at_a_socket(candidate: Path, tmp_path: Path) -> None:
    """`desk web --uds`, as its unit starts it: for the account and the group of the folder, and at no port."""
    tiny, path = copy_site(candidate, tmp_path / "site"), tmp_path / "desk.sock"
    with serving_desk(tiny, tmp_path / "backend.sock"):
        command = [sys.executable, "-m", "release_pipeline", "desk", "web", "--socket", str(tmp_path / "backend.sock")]
        command += ["--uds", str(path), "--allow-host", NAME]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert f"the desk: https://{NAME}/" in process.stdout.readline()
            assert path.stat().st_mode & 0o777 == 0o660
            assert not psutil.Process(process.pid).net_connections("inet")
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(HANGING)
                connection.connect(str(path))
                connection.sendall(f"GET /login HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
                answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            assert answer.startswith(b"HTTP/1.1 200")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=HANGING)
    assert not path.exists()
