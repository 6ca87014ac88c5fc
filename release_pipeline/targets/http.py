"""How this program asks a web server: nowhere else than where it was told to, whatever is answered.

Imported only when something is sent: httpx takes long to load.
"""

from __future__ import annotations

import json
import logging
import ssl
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import quote, urlsplit

import httpx

from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.environment import LOCAL, find_address_fault
from release_pipeline.targets.target import TargetFailed

FAULTS = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)  # of a request that got no whole answer
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(lambda _: False)  # they log addresses and headers, which may hold a secret


def open_client(address: str, *, timeout: float) -> httpx.Client:
    """A client for an address; it follows no redirection, or a token would go along. `timeout`: seconds for each step.

    It asks by the proxy of the environment, except on this machine: a proxy's own `localhost` is another machine. It trusts the
    certificates that this machine trusts."""
    parts = urlsplit(address)
    # By http there is no TLS: the context that trusts nobody is made at once.
    trusted = ssl.create_default_context() if parts.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    headers = {"User-Agent": f"release-pipeline/{__version__}", "Accept-Encoding": "identity"}
    return httpx.Client(timeout=timeout, headers=headers, verify=trusted, trust_env=parts.hostname not in LOCAL)


def name_fault(error: BaseException) -> str:
    """The kind of what went wrong, without its message, which may have an address."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    return type(cause or error).__name__


# A server with an API of JSON, as archives have it. What it replies is read for what is needed, and
# never passed on: an error is a sentence of ours with the status. The token goes to this server
# alone, and never by a road that others can read.
#
# Imported only when something is delivered: httpx takes long to load.


WAIT_SECONDS = 120.0  # for each step of a connection: an archive may look at a large file before it answers
PAUSES = (1.0, 4.0)  # seconds before what changes nothing if it is done twice is tried again
_LONGEST = 32 << 20  # bytes of a reply
_AGAIN = (429, 500, 502, 503, 504)
_SAFE = ("GET", "PUT", "DELETE")
NOT_FOUND = 404
Query: TypeAlias = Mapping[str, str]
_WORDS = {
    401: ("it does not know the token", "Is it of an account there, and still valid?"),
    403: ("the account of the token may not do that", "Give it the right to deposit and to publish there."),
    404: ("it has no such thing, or the account of the token may not see it", "Check address and names in site.yaml."),
    409: ("that does not go with what it has", "Look at what is there; it may be at work with it. Then try again."),
    413: ("the file is too large for it", "Ask who runs it for more room."),
    429: ("too much was asked of it in short time", "Try again later."),
}


@dataclass(frozen=True, slots=True)
class Form:
    """A form with a file, as browsers send it."""

    fields: Mapping[str, str]
    name: str  # of the field that has the file
    file: Path


@dataclass(frozen=True, slots=True)
class Server:
    """A server, and the header by which it knows who asks. `name`: what it is called in words."""

    base: str
    name: str
    header: Mapping[str, str]

    def ask(
        self,
        doing: str,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        document: Any = None,
        body: Path | Form | None = None,
    ) -> Any:
        """What it replies, as JSON; None where that is nothing, or where there is no such thing (404 to GET or DELETE). `doing`
        says in a message what was tried. GET, PUT and DELETE are tried again; POST may have been done, and is not."""
        pauses = list(PAUSES) if method in _SAFE else []
        while True:
            try:
                status, content = self._exchange(method, f"{self.base}{path}", query, document, body)
            except FAULTS as error:
                if not pauses:
                    what = f"it cannot be reached, or the connection was cut ({name_fault(error)}, {doing})."
                    raise TargetFailed(what, where=self.name, remedy="Check address and network, and try again.") from None
            else:
                if content is not None:
                    return self._read(doing, content)
                if status == NOT_FOUND and method in ("GET", "DELETE"):
                    return None
                if status not in _AGAIN or not pauses:
                    raise self.refused(doing, status)
            time.sleep(pauses.pop(0))

    def refused(self, doing: str, status: int) -> TargetFailed:
        """What a status means, in words."""
        what, remedy = _WORDS.get(status, ("it refused", "Look there, or ask who runs it."))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            what, remedy = "it failed", "Try again later."
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            what, remedy = "it sends one elsewhere, where the token does not go", "Name its own address in site.yaml."
        return TargetFailed(f"{what} ({status}, {doing}).", where=self.name, remedy=remedy)

    def misread(self, doing: str) -> TargetFailed:
        """That a reply is not what the API's documents describe."""
        what = f"what it replied is not what its documents describe ({doing})."
        return TargetFailed(what, where=self.name, remedy="Is that its address, and of a version that is known?")

    def _exchange(
        self, method: str, address: str, query: Query | None, document: Any, body: Path | Form | None
    ) -> tuple[int, bytes | None]:
        """The status of a reply, and what it says if it is a success: at most one byte more than is read of any."""
        headers = {"Accept": "application/json", **self.header}
        with ExitStack() as stack:
            client = stack.enter_context(open_client(address, timeout=WAIT_SECONDS))
            sent: dict[str, Any] = {} if document is None else {"json": document}
            if isinstance(body, Form):
                file = stack.enter_context(body.file.open("rb"))
                sent = {"data": body.fields, "files": {body.name: (body.file.name, file)}}
            elif body is not None:
                sent = {"content": stack.enter_context(body.open("rb"))}
                headers["Content-Type"] = "application/octet-stream"
            reply = stack.enter_context(client.stream(method, address, params=query, headers=headers, **sent))
            if not reply.is_success:
                return reply.status_code, None
            content = bytearray()
            for piece in reply.iter_raw():
                content += piece
                if len(content) > _LONGEST:
                    break
            return reply.status_code, bytes(content)

    def _read(self, doing: str, content: bytes) -> Any:
        """A reply as JSON; None where it is nothing."""
        if not content.strip():
            return None
        try:
            if len(content) <= _LONGEST:
                return json.loads(content)
        except (ValueError, RecursionError):
            pass
        raise self.misread(doing)


def open_server(address: str, name: str, header: Mapping[str, str]) -> Server:
    """The server at an address, that anybody may see; refused where the token would not be safe on its way."""
    if (fault := find_address_fault(address)) is not None:
        raise ReleasePipelineError(fault, where=name, remedy="Write it as https://HOST.")
    if any(not value.isascii() or not value.isprintable() or not value.strip() for value in header.values()):
        raise ReleasePipelineError("the token is empty, or has letters that no token has.", where=name, remedy="Set it anew.")
    return Server(address.rstrip("/"), name, header)


def get(content: Any, *path: str) -> Any:
    """A part of a reply; None where there is none."""
    for step in path:
        content = cast(dict[str, Any], content).get(step) if isinstance(content, dict) else None
    return content


def get_list(content: Any, *path: str) -> list[Any] | None:
    """A part of a reply that is a list; None where there is none."""
    found = get(content, *path)
    return cast(list[Any], found) if isinstance(found, list) else None


def escape(part: str) -> str:
    """A name as a part of a path."""
    return quote(part, safe="")
