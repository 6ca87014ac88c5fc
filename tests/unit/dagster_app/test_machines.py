"""What machines ask of the door: nothing but ok without the token, and no more work than one look at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.dagster.door import Door, Entrance
from release_pipeline.apps.dagster.judge import Role
from release_pipeline.apps.dagster.machines import Machines, read_token
from release_pipeline.apps.door import local_addresses
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.site import Site
from tests.integration.sites import TinySite, make_site

TOKEN = "t" * 43
HOST = (b"host", b"127.0.0.1:3000")
BEARER = (b"authorization", f"Bearer {TOKEN}".encode())
CANARY = "kanarie"


@pytest.fixture
def tiny(tmp_path: Path) -> TinySite:
    """A site where nothing has happened."""
    return make_site(tmp_path / CANARY)


def ask(door: Door, path: str, *headers: tuple[bytes, bytes], method: str = "GET") -> tuple[int, str]:
    """One request, and what came back."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    scope = {"type": "http", "method": method, "path": path, "headers": [HOST, *headers], "query_string": b""}
    asyncio.run(door(scope, receive, send))
    return sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:]).decode()


def door_of(site: Site, clock: Sequence[float] = (0.0,)) -> Door:
    """A door, with nothing behind it."""

    async def nothing(*_: Any) -> None:
        raise AssertionError("the door let it through")

    machines = Machines(site, token=TOKEN, heartbeat=lambda: None, clock=lambda: clock[0])
    way = Entrance([Role.VIEW])
    return Door({"/x": nothing}, way=way, addresses=local_addresses(3000), most=Role.VIEW, machines=machines)


def test_everybody_may_ask_whether_it_is_well_and_learns_no_more(tiny: TinySite) -> None:
    """ok, or not ok; no name, no reason."""
    door = door_of(tiny.site)
    assert ask(door, "/healthz") == (200, "ok\n")
    tiny.site.vault.mkdir(mode=0o755)
    tiny.site.vault.chmod(0o755)
    assert ask(door_of(tiny.site), "/healthz") == (503, "not ok\n")


def test_figures_need_the_token(tiny: TinySite) -> None:
    """That and no other, once; by GET, and by the names of the door."""
    door = door_of(tiny.site)
    assert ask(door, "/metrics")[0] == 401
    others = (f"Bearer {TOKEN}x".encode(), f"Basic {TOKEN}".encode(), TOKEN.encode())
    for said in (b"", b"Bearer", b"Bearer ", b"Bearer \xff", *others):
        status, text = ask(door, "/metrics", (b"authorization", said))
        assert (status, "release_pipeline" in text) == (401, False), said
    assert ask(door, "/metrics", BEARER, BEARER)[0] == 400
    status, text = ask(door, "/metrics", BEARER)
    assert (status, text.endswith("# EOF\n")) == (200, True)
    own = ((b"origin", b"http://127.0.0.1:3000"),)
    assert [ask(door, path, BEARER, *own, method="POST")[0] for path in ("/metrics", "/healthz")] == [405, 405]
    assert ask(door, "/metrics", BEARER, (b"host", b"evil.example"))[0] in (400, 403)


def test_the_token_is_made_once_and_is_the_operators_alone(tiny: TinySite) -> None:
    """One that others may read, or that is none, is refused in words."""
    tiny.site.dagster_home.mkdir()
    token = read_token(tiny.site)
    file = tiny.site.dagster_home / "metrics.token"
    assert (file.stat().st_mode & 0o777, len(token) >= 43, read_token(tiny.site)) == (0o600, True, token)
    file.chmod(0o640)
    with pytest.raises(ReleasePipelineError, match="other accounts may read the token"):
        read_token(tiny.site)
    file.chmod(0o600)
    file.write_text("\n")
    with pytest.raises(ReleasePipelineError, match="this is no token"):
        read_token(tiny.site)
