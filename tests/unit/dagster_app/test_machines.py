"""What machines ask of the door: ok or not ok, and no more work than one look at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.apps.dagster.door import Door, Entrance
from release_pipeline.apps.dagster.judge import Role
from release_pipeline.apps.dagster.machines import Machines
from release_pipeline.apps.door import local_addresses
from release_pipeline.store.site import Site
from tests.integration.sites import TinySite, make_site

HOST = (b"host", b"127.0.0.1:3000")
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

    machines = Machines(site, heartbeat=lambda: None, clock=lambda: clock[0])
    way = Entrance([Role.VIEW])
    return Door({"/x": nothing}, way=way, addresses=local_addresses(3000), most=Role.VIEW, machines=machines)


def test_everybody_may_ask_whether_it_is_well_and_learns_no_more(tiny: TinySite) -> None:
    """ok, or not ok; no name, no reason."""
    door = door_of(tiny.site)
    assert ask(door, "/healthz") == (200, "ok\n")
    assert ask(door, "/healthz", (b"origin", b"http://127.0.0.1:3000"), method="POST")[0] == 405
    assert ask(door, "/healthz", (b"host", b"evil.example"))[0] in (400, 403)
    tiny.site.vault.mkdir(mode=0o755)
    tiny.site.vault.chmod(0o755)
    assert ask(door_of(tiny.site), "/healthz") == (503, "not ok\n")
