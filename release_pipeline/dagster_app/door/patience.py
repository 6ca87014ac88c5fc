"""How long a query may take: whoever may look asks anything, and what it costs is the time of everybody else.

Dagster answers each query in a thread of the door's process. A thread cannot be ended from outside without harm (it may hold a
lock), so it ends itself: before each field it looks whether its time is over. What a single field does is bounded by the counts
that `judge` lets through, where a query names them. Whoever asked is answered in time, whatever the thread still does; and it
counts until it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.door.refusal import Refused

SECONDS = 30.0
_AT_ONCE = {Role.VIEW: 8, Role.OPERATE: 24}  # of the forty threads that there are
_LATE = f"the answer took longer than {SECONDS:.0f} s and was given up. Ask for less."
_BUSY = "as many queries of your role as there may be are being answered, and none of them ended: ask again later."
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_ends: ContextVar[float] = ContextVar("_ends")


class _Late(BaseException):
    """Its time is over. No `Exception`, for of those GraphQL makes an error of one field, and goes on with the next."""


def stop_late(resolve: Callable[..., Any], root: Any, info: Any, **arguments: Any) -> Any:
    """A middleware of GraphQL, called before each field."""
    if time.monotonic() > _ends.get(float("inf")):
        raise _Late
    return resolve(root, info, **arguments)


class Patience:
    """Queries that are being answered, of each role so many."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._free = {role: asyncio.Semaphore(most) for role, most in _AT_ONCE.items()}

    async def answer(self, role: Role, send: _Send, ask: Callable[[_Send], Awaitable[None]]) -> None:
        """Have `ask` answer, with what it is to send by; `Refused` where that takes too long."""
        free, ends = self._free[role], time.monotonic() + self._seconds
        begun = given_up = False
        try:
            await asyncio.wait_for(free.acquire(), self._seconds)
        except TimeoutError:
            raise Refused(503, _BUSY) from None

        async def send_in_time(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            if not given_up:
                begun = True
                await send(message)

        async def work() -> None:
            _ends.set(ends)  # threads that it starts have it too
            await ask(send_in_time)

        def end(task: asyncio.Task[None]) -> None:
            free.release()
            if not task.cancelled():
                task.exception()  # looked at: whoever asked has gone

        task = asyncio.create_task(work())
        task.add_done_callback(end)
        try:
            done, _ = await asyncio.wait({task}, timeout=max(0.0, ends - time.monotonic()) + 0.1)
        except asyncio.CancelledError:
            task.cancel()
            raise
        given_up = not done and not begun
        if given_up:
            raise Refused(503, _LATE)
        try:
            await task
        except _Late:
            raise Refused(503, _LATE) from None
