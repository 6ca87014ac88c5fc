"""What machines ask of the door, who have no session: whether the site is well, and its figures.

`/healthz` says ok or not ok to everybody who knows the name of the door, and no more. `/metrics` names policies and populations:
it asks for a token of its own. A session ends after eight hours and with the process, and a rule for addresses would let in every
account of this machine. The token can do nothing else; it is made once, and lies beside Dagster's records for the operator alone.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from release_pipeline.apps.door import Headers, Refused, read_one
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.operate.health import TYPE, check_health, write_metrics
from release_pipeline.policy.loading.load import read_text
from release_pipeline.store.files import write_text
from release_pipeline.store.site import Site

HEALTH, METRICS = "/healthz", "/metrics"
PATHS = (HEALTH, METRICS)
REMEMBERED_SECONDS = 10.0  # whoever asks again gets the same answer: everybody may ask about health, and it costs a look
_FILE = "metrics.token"
_BEARER = "bearer "
Found = TypeVar("Found")


def read_token(site: Site) -> str:
    """The token for `/metrics`, from its file, which is made where there is none."""
    file = site.dagster_home / _FILE
    if not file.exists():
        write_text(file, f"{secrets.token_urlsafe(32)}\n")
    if file.stat().st_mode & 0o077:
        raise ReleasePipelineError(
            "other accounts may read the token.",
            where=str(file),
            remedy="Remove the file: another one is made.",
        )
    token = read_text(file).strip()
    if not (token and token.isascii()):
        raise ReleasePipelineError("this is no token.", where=str(file), remedy="Remove the file: another one is made.")
    return token


class Machines:
    """Answers them. One look at a time, in a thread: a registry that is busy keeps nobody else waiting."""

    def __init__(
        self,
        site: Site,
        *,
        token: str,
        heartbeat: Callable[[], datetime | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._token = token
        self._health = _Remembered(lambda: check_health(site, heartbeat=heartbeat).ok, clock)
        self._metrics = _Remembered(lambda: write_metrics(site), clock)

    async def answer(self, path: str, headers: Headers) -> Response:
        """The answer to a request for one of `PATHS`."""
        if path == HEALTH:
            well = await self._health.get()
            return PlainTextResponse("ok\n" if well else "not ok\n", 200 if well else 503)
        said = read_one(headers, b"authorization") or ""
        given = said[len(_BEARER) :] if said[: len(_BEARER)].lower() == _BEARER else ""
        if not hmac.compare_digest(given.strip().encode("latin-1"), self._token.encode()):
            raise Refused(401, "figures are for who has the token of metrics: Authorization: Bearer TOKEN.")
        text = await self._metrics.get()
        if text is None:
            raise Refused(503, "the site cannot be read now: `release-pipeline status --health` says why.")
        return PlainTextResponse(text, media_type=TYPE)


class _Remembered(Generic[Found]):
    """What a look found, for a while; None where it could not be made."""

    def __init__(self, look: Callable[[], Found], clock: Callable[[], float]) -> None:
        self._look, self._clock = look, clock
        self._found: Found | None = None
        self._until = float("-inf")
        self._one_at_a_time = asyncio.Lock()

    async def get(self) -> Found | None:
        """It, looked up anew if that was long ago."""
        async with self._one_at_a_time:
            if self._clock() >= self._until:
                self._found = await run_in_threadpool(self._try)
                self._until = self._clock() + REMEMBERED_SECONDS
            return self._found

    def _try(self) -> Found | None:
        try:
            return self._look()
        except Exception:  # whatever storage Dagster has raises its own
            return None
