"""Websockets through the door: so many of each role, and none that outlives its session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.dagster_app.door.sessions import Visitor
from release_pipeline.dagster_app.door.sockets import _AT_ONCE, Sockets

ASKED = {"query": 'subscription { pipelineRunLogs(runId: "1") { __typename } }'}
MOST = _AT_ONCE[Role.VIEW]


def say(kind: str, name: object, **more: Any) -> dict[str, Any]:
    return {"type": "websocket.receive", "text": json.dumps({"type": kind, "id": name, **more})}


def start(name: object) -> dict[str, Any]:
    return say("start", name, payload=ASKED)


class Page:
    """A connection: what it says, and what it is sent."""

    def __init__(self, sockets: Sockets, role: Role = Role.VIEW, here: Callable[[], bool] = lambda: True) -> None:
        self.says: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.reached: list[str] = []  # Dagster
        self.dagster: Callable[[dict[str, Any]], Awaitable[None]] | None = None
        self.task = asyncio.create_task(sockets.carry(Visitor(role, here), self.says.get, self.send, self.serve))

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def serve(self, receive: Any, send: Any) -> None:
        self.dagster = send
        while (message := await receive())["type"] == "websocket.receive":
            self.reached.append(message["text"])

    async def say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.says.put_nowait(message)
        while not self.says.empty():
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)

    async def leave(self) -> None:
        await self.say({"type": "websocket.disconnect"})
        await self.task


def test_a_role_has_so_many_and_leaves_room_for_the_other() -> None:
    """The connections and subscriptions of who only looks; what ends makes room, in each of the ways in which it ends."""

    async def look() -> None:
        sockets = Sockets()
        page = Page(sockets)
        await page.say(*(start(str(number)) for number in range(MOST + 5)))
        assert len(page.reached) == MOST - 1, "the connection counts too"
        assert len(page.sent) == 6
        assert all("as many subscriptions of your role" in message["text"] for message in page.sent)
        late = Page(sockets)
        await late.say({"type": "websocket.connect"})
        assert late.sent == [{"type": "websocket.close", "code": 1013}]
        other = Page(sockets, Role.OPERATE)
        await other.say(start("1"))
        assert len(other.reached) == 1
        await page.say(say("stop", "1"), start("a"))
        assert page.dagster is not None
        await page.dagster({"type": "websocket.send", "text": json.dumps({"type": "complete", "id": "2"})})
        await page.say(start("b"), start("c"))
        assert json.loads(page.reached[-1])["id"] == "b"
        await page.leave()
        again = Page(sockets)
        await again.say(*(start(number) for number in range(MOST - 1)))
        assert (len(again.reached), again.sent) == (MOST - 1, [])
        await again.leave()
        await other.leave()

    asyncio.run(look())


def test_a_name_is_open_once() -> None:
    """Else one would end for both, and the other would be counted by nobody."""

    async def look() -> None:
        page = Page(Sockets())
        await page.say(start("1"), start("1"))
        assert (len(page.reached), len(page.sent)) == (1, 1)
        await page.leave()

    asyncio.run(look())


def test_it_is_closed_when_the_session_ends() -> None:
    """With the next message, in either direction."""

    async def look() -> None:
        here = [True]
        page = Page(Sockets(), here=lambda: here[0])
        await page.say(start("1"))
        here[0] = False
        assert page.dagster is not None
        await page.dagster({"type": "websocket.send", "text": "{}"})
        assert page.sent == [{"type": "websocket.close", "code": 1008}]
        await page.say(start("2"))
        await page.task
        assert len(page.reached) == 1

    asyncio.run(look())
