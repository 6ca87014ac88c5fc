"""Sessions of the door and its websockets: begun with a token, ended by the time or by logging out."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

from starlette.requests import Request

from release_pipeline.apps.dagster.door import LASTS_SECONDS, Entrance, JudgedSocket
from release_pipeline.apps.dagster.judge import Role


def log_in(entrance: Entrance, token: str) -> list[tuple[bytes, bytes]]:
    """The headers of a browser that posted this token."""
    answer = entrance.log_in(f"token={quote(token, errors='surrogateescape')}".encode())
    return [(b"cookie", answer.headers.get("set-cookie", "").partition(";")[0].encode())]


def test_a_session_has_the_role_of_its_token_and_ends() -> None:
    """After its time, or when somebody leaves; no other session ends with it."""
    now = [0.0]
    entrance = Entrance(Role, clock=lambda: now[0])
    browsers = {role: log_in(entrance, entrance.tokens[role]) for role in Role}
    assert {role: entrance.find(headers) for role, headers in browsers.items()} == {role: role for role in Role}
    entrance.log_out(Request({"type": "http", "headers": browsers[Role.VIEW]}), "/x")
    assert entrance.find(browsers[Role.VIEW]) is None
    now[0] = LASTS_SECONDS - 1
    assert entrance.find(browsers[Role.OPERATE]) is Role.OPERATE
    now[0] = LASTS_SECONDS
    assert entrance.find(browsers[Role.OPERATE]) is None


def test_nothing_else_is_let_in() -> None:
    """No token, a token of another start, the token in place of the cookie, or a role that this door does not have."""
    entrance, others = Entrance([Role.VIEW]), Entrance(Role)
    assert set(entrance.tokens) == {Role.VIEW}
    for token in ("", "x", "\udcff", others.tokens[Role.OPERATE]):
        assert entrance.find(log_in(entrance, token)) is None
    cookie = f"release_pipeline_door={entrance.tokens[Role.VIEW]}".encode()
    assert entrance.find([(b"cookie", cookie)]) is entrance.find([]) is None


def test_a_websocket_is_closed_when_its_session_ends() -> None:
    """With the next message, in either direction."""
    here, sent = [True], list[Any]()
    query = 'subscription { pipelineRunLogs(runId: "1") { __typename } }'
    said = {"type": "websocket.receive", "text": json.dumps({"type": "start", "id": "1", "payload": {"query": query}})}

    async def receive() -> Any:
        return said

    async def send(message: Any) -> None:
        sent.append(message)

    async def look() -> None:
        judged = JudgedSocket(Role.VIEW, lambda: here[0], receive, send)
        assert (await judged.receive())["type"] == "websocket.receive"
        here[0] = False
        await judged.send({"type": "websocket.send", "text": "{}"})
        assert (await judged.receive())["type"] == "websocket.disconnect"
        await judged.send({"type": "websocket.send", "text": "{}"})
        assert sent == [{"type": "websocket.close", "code": 1008}]

    asyncio.run(look())
