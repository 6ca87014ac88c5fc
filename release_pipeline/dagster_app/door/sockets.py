"""A websocket between a page and Dagster: each message judged, and closed when its session ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from json import dumps
from typing import Any

from release_pipeline.dagster_app.door.judge import judge_message, name_of
from release_pipeline.dagster_app.door.refusal import Refused
from release_pipeline.dagster_app.door.sessions import Visitor

_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_POLICY = 1008  # the code of RFC 6455 for a connection that is no longer allowed


def carry(visitor: Visitor, receive: _Receive, send: _Send) -> tuple[_Receive, _Send]:
    """What Dagster receives and sends in place of the connection itself."""
    closed = False

    async def close() -> None:
        nonlocal closed
        if not closed:
            closed = True
            await send({"type": "websocket.close", "code": _POLICY})

    async def receive_judged() -> MutableMapping[str, Any]:
        while True:
            message = await receive()
            if message["type"] != "websocket.receive":
                return message
            text = message.get("text")
            if not visitor.is_here() or text is None:
                await close()
                return {"type": "websocket.disconnect", "code": _POLICY}
            try:
                return {"type": "websocket.receive", "text": judge_message(text, visitor.role)}
            except Refused as refused:
                words = {"message": f"Refused: {refused.words}"}
                await send({"type": "websocket.send", "text": dumps({"type": "error", "id": name_of(text), "payload": words})})

    async def send_while_here(message: MutableMapping[str, Any]) -> None:
        if closed:
            return
        if message["type"] == "websocket.send" and not visitor.is_here():
            await close()
            return
        await send(message)

    return receive_judged, send_while_here
