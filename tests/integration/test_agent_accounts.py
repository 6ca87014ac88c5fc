"""The agent and another account of the same machine, by processes that really are of one: whatever they do is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest

from release_pipeline.flow.reviewing.bundle import write_bundle
from release_pipeline.sign import read_signer
from tests.guards import HANGING
from tests.integration.fake_desks import open_agent, open_desk
from tests.integration.people import copy_site

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become other accounts"),
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says whose a connection is"),
]

NOBODY = 65534
CLIENT = """
import os, socket, sys
account, way, port, request = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4].encode()
os.setgroups([]) or os.setgid(account) or os.setuid(account)
mapped = way == "by IPv6"
one = socket.socket(socket.AF_INET6 if mapped else socket.AF_INET)
one.settimeout(20)
if way == "from the agent's own port":
    one.bind(("127.0.0.2", port))
one.connect(("::ffff:127.0.0.1" if mapped else "127.0.0.1", port))
one.sendall(request)
if way == "with nothing more to say":
    one.shutdown(socket.SHUT_WR)
if way == "and gone":
    sys.exit()
answer = b""
try:
    while piece := one.recv(65536):
        answer += piece
except ConnectionResetError:
    pass
print(answer.decode())
"""
WAYS = ["as browsers do", "with nothing more to say", "from the agent's own port", "by IPv6"]


def ask_as(account: int, way: str, port: int, path: str) -> str:
    """What an account of the machine is answered."""
    request = f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    asked = [sys.executable, "-I", "-S", "-c", CLIENT, str(account), way, str(port), request]
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=HANGING).stdout


@pytest.fixture(scope="module")
def bundle(candidate: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A candidate, to be signed."""
    tiny = copy_site(candidate, tmp_path_factory.mktemp("accounts") / "site")
    return write_bundle(tiny.site, "people/1", tiny.home.parent / "people-1.zip")[0]


@pytest.mark.slow
def test_another_account_is_not_answered(bundle: Path, key_folder: Path, tmp_path: Path) -> None:
    """Neither a ticket nor a review that is open, though it has their names; the agent's own account is, in the same ways."""
    signer = read_signer(key_folder / "ben")
    with open_desk() as desk, open_agent([desk.origin], [signer]) as ben:
        port = ben.agent.server_address[1]
        link = "/?" + urlencode({"desk": desk.origin, "ticket": desk.give(bundle, "ben")})
        review = ben.ask("GET", link).headers["Location"]
        asked = len(desk.asked)
        for way in WAYS:
            for path in ("/", link, review, f"{review}/report"):
                refused = ask_as(NOBODY, way, port, path)
                assert " 403 " in refused.splitlines()[0], (way, path)
                assert "Another account of this machine" in refused
            assert " 200 " in ask_as(0, way, port, review).splitlines()[0], way
        ask_as(NOBODY, "and gone", port, link)  # Linux says then that the connection is of root, who this agent is
        assert ben.ask("GET", "/").status == 200
    assert len(desk.asked) == asked
