"""The web process's requests to the backend. It has no other way to the site."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from release_pipeline.desk.protocol import FILE_HEADER, LONGEST, REQUESTS, CallRequest
from release_pipeline.door import Refused

_SECONDS = 120  # for what is computed there: an audit's page, a package that is verified
AWAY = "the site's backend does not answer. The operator starts it: release-pipeline desk backend."


@dataclass(frozen=True, slots=True)
class Credentials:
    """By what the browser says who it is."""

    session: str = ""
    place: str = ""
    proxy: tuple[tuple[str, str], ...] = ()


NOBODY = Credentials()


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """An answer: a document, or a file that is still to be read, with its name and facts."""

    status: int
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    file: httpx.Response | None = None
    name: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Client:
    """Sends calls to the backend at a socket, each on a connection of its own."""

    def __init__(self, path: Path, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._http = httpx.AsyncClient(
            transport=transport or httpx.AsyncHTTPTransport(uds=str(path), verify=False, limits=limits),
            timeout=_SECONDS,
            trust_env=False,
        )

    async def ask(
        self, call: str, who: Credentials = NOBODY, arguments: Mapping[str, str] | None = None, body: str = ""
    ) -> BackendAnswer:
        """The answer; `Refused` where nobody answers."""
        content = REQUESTS.dump_json(CallRequest(call, arguments or {}, body, who.session, who.place, who.proxy))
        if len(content) > LONGEST:
            raise Refused(413, "this is longer than anything that the desk takes.")
        try:
            answer = await self._http.send(self._http.build_request("POST", "http://localhost/", content=content), stream=True)
            if (file := answer.headers.get(FILE_HEADER)) is not None:
                return BackendAnswer(answer.status_code, {}, answer, **json.loads(file))
            await answer.aread()
            return BackendAnswer(answer.status_code, answer.json())
        except (httpx.HTTPError, ValueError):
            raise Refused(503, AWAY) from None
