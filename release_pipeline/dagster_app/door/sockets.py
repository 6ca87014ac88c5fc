"""Websockets between pages and Dagster: each message judged, so many at once, and closed when its session ends."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from release_pipeline.dagster_app.door.judge import judge_message, name_of
from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.dagster_app.door.sessions import Visitor
from release_pipeline.door.refusal import Refused

Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[Message]]
_Send = Callable[[Message], Awaitable[None]]
_POLICY, _LATER = 1008, 1013  # codes of RFC 6455 and its registry: no longer allowed; try again later
_AT_ONCE = {Role.VIEW: 100, Role.OPERATE: 300}  # connections and subscriptions: each of these looks for news by itself


class Sockets:
    """The connections and subscriptions that are open, of each role so many."""

    def __init__(self) -> None:
        self._open = dict.fromkeys(Role, 0)

    async def carry(
        self, visitor: Visitor, receive: _Receive, send: _Send, serve: Callable[[_Receive, _Send], Awaitable[None]]
    ) -> None:
        """Have `serve` answer a connection, with what it receives and sends by in the place of the connection itself."""
        if self.is_full(visitor.role):
            await receive()
            await send({"type": "websocket.close", "code": _LATER})
            return
        carried = _Carried(self, visitor, receive, send)
        self.count(visitor.role, 1)
        try:
            await serve(carried.receive, carried.send)
        finally:
            self.count(visitor.role, -1 - len(carried.names))

    def is_full(self, role: Role) -> bool:
        """Whether as many of a role are open as there may be."""
        return self._open[role] >= _AT_ONCE[role]

    def count(self, role: Role, more: int) -> None:
        """So many more are open, or fewer."""
        self._open[role] += more


class _Carried:
    """One connection. `names`: of its subscriptions that are open."""

    def __init__(self, sockets: Sockets, visitor: Visitor, receive: _Receive, send: _Send) -> None:
        self.names: set[str | int | None] = set()
        self._sockets, self._visitor, self._receive, self._send = sockets, visitor, receive, send
        self._closed = False

    async def receive(self) -> Message:
        """The next message that Dagster may have."""
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return message
            text = message.get("text")
            if not self._visitor.is_here() or text is None:
                await self._close()
                return {"type": "websocket.disconnect", "code": _POLICY}
            try:
                judged = judge_message(text, self._visitor.role)
                self._follow(json.loads(judged))
                return {"type": "websocket.receive", "text": judged}
            except Refused as refused:
                words = {"message": f"Refused: {refused.words}"}
                told = json.dumps({"type": "error", "id": name_of(text), "payload": words})
                await self._send({"type": "websocket.send", "text": told})

    async def send(self, message: Message) -> None:
        """Send it, while its session lasts."""
        if self._closed:
            return
        if message["type"] == "websocket.send":
            if not self._visitor.is_here():
                await self._close()
                return
            text = message.get("text") or ""
            if '"complete"' in text and (told := json.loads(text)).get("type") == "complete":
                self._end(told.get("id"))
        await self._send(message)

    def _follow(self, message: Message) -> None:
        kind, name = message["type"], message.get("id")
        if kind == "stop":
            self._end(name)
        elif kind == "start":
            if name in self.names:
                raise Refused(400, "a subscription of this name is open.")
            if self._sockets.is_full(self._visitor.role):
                raise Refused(503, "as many subscriptions of your role as there may be are open: close a page.")
            self.names.add(name)
            self._sockets.count(self._visitor.role, 1)

    def _end(self, name: str | int | None) -> None:
        if name in self.names:
            self.names.remove(name)
            self._sockets.count(self._visitor.role, -1)

    async def _close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._send({"type": "websocket.close", "code": _POLICY})
