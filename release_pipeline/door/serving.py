"""Limits of the servers of our web pages: how long a request may take, and how many connections there are.

uvicorn sets no deadline for a request, and its `limit_concurrency` refuses everybody alike. A
thousand connections with half a head each would take all files that the process may open. This
protocol ends slow requests. Where there are too many connections, it ends the one that has waited
longest for the rest of a request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, MutableMapping
from itertools import count
from types import MappingProxyType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from release_pipeline.door import Refused

HEAD_SECONDS = 10.0  # for the head of a request: browsers and proxies send it at once
BODY_SECONDS = 60.0  # for the whole body: two megabytes, at 35 kB a second
TAKING_SECONDS = 60.0  # in which the other end takes at least something of an answer
MOST_CONNECTIONS = 400  # each may have a second file, to the counter: both fit into 1,024, the usual limit
SECURITY_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # 'no-referrer' would take the Origin from our own forms too
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_BEGUN = count(1)  # numbers stages as they begin: clocks of event loops may give many connections one time
_CLOSING_SECONDS = 5  # a page that stays open must not keep the server from ending


def configure_server(application: Any, *, http: Any = None, **more: Any) -> uvicorn.Config:
    """The settings of a server whose connections end when they are too slow, and make room for others."""
    return uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
        http=http or PatientProtocol,
        **more,
    )


class Server(uvicorn.Server):
    """Calls `ready` once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        if self.started:
            self._ready()


async def read_body(parts: AsyncIterable[bytes], longest: int, find_longest: Callable[[], Awaitable[int]] | None = None) -> bytes:
    """The body of a request; `Refused` where it is longer than `longest` bytes, or than what
    `find_longest` gives, which is only called for a body that is longer."""
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > longest and find_longest is not None:
            longest, find_longest = await find_longest(), None
        if len(body) > longest:
            raise Refused(413, "this is longer than anything that is taken here.")
    return bytes(body)


def with_headers(
    send: Send,
    *,
    always: Mapping[bytes, bytes] = MappingProxyType({}),
    defaults: Mapping[bytes, bytes],
    more: Iterable[tuple[bytes, bytes]] = (),
) -> Send:
    """Sends every answer with these headers: `always` in the place of its own, `defaults` where it
    has none of that name, and `more` beside its own."""

    async def send_with(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = [pair for pair in message.get("headers", ()) if pair[0].lower() not in always]
            names = {name.lower() for name, _ in own}
            own += [pair for pair in defaults.items() if pair[0] not in names]
            message = {**message, "headers": [*own, *always.items(), *more]}
        await send(message)

    return send_with


class PatientProtocol(H11Protocol):
    """One connection, for as long as it goes on."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._stage: tuple[str, object] | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._begun = 0  # the number of the stage
        self._ended = False

    @property
    def waits(self) -> bool:
        """Whether the other end has a request to begin or to finish."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete or cycle.more_body)

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._set_deadline()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Called when an answer was sent."""
        super().on_response_complete()
        self._set_deadline()

    def pause_writing(self) -> None:
        """The other end takes nothing more for now."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(TAKING_SECONDS, self.end)

    def resume_writing(self) -> None:
        """The other end has taken what there was."""
        super().resume_writing()
        _cancel(self._stalled)
        self._stalled = None

    def handle_websocket_upgrade(self, event: Any) -> None:
        """The connection is another protocol's from here on."""
        self._leave()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._leave()
        super().connection_lost(exc)

    def end(self) -> None:
        """Close the connection without waiting for what the other end has not taken."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self._ended = True
        for timer in (self._timer, self._stalled):
            _cancel(timer)

    def _set_deadline(self) -> None:
        """A timer for each stage of a request, from its beginning: bytes that trickle in do not put it off."""
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            stage, seconds = ("head", cycle), HEAD_SECONDS
        else:
            stage, seconds = ("body" if cycle.more_body else "answer", cycle), BODY_SECONDS
        if self._ended or stage == self._stage:
            return
        _cancel(self._timer)
        self._stage, self._begun = stage, next(_BEGUN)
        self._timer = None if stage[0] == "answer" else self.loop.call_later(seconds, self.end)

    def _make_room(self) -> None:
        """End the connection that has waited longest without a whole request; this one, where all others are being answered."""
        others = [one for one in self.connections if isinstance(one, PatientProtocol) and not one._ended]
        if len(others) > MOST_CONNECTIONS:
            min((one for one in others if one.waits), key=lambda one: one._begun).end()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
