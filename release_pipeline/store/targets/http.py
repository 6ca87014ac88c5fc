"""A server with an API of JSON, as archives have it. What it replies is read for what is needed, and never passed on: an error is
a sentence of ours with the status. The token goes to this server alone, and never by a road that others can read.

Imported only when something is delivered: what speaks TLS takes long to load.
"""

from __future__ import annotations

import http.client
import json
import mimetypes
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast
from urllib.parse import quote, urlencode

from release_pipeline import __version__
from release_pipeline.errors import ReleasePipelineError
from release_pipeline.store.addresses import find_address_fault
from release_pipeline.store.targets.target import TargetFailed
from release_pipeline.store.web import open_request

WAIT_SECONDS = 120.0  # for each step of a connection: an archive may look at a large file before it answers
PAUSES = (1.0, 4.0)  # seconds before what changes nothing if it is done twice is tried again
_LONGEST = 32 << 20  # bytes of a reply
_PIECE = 1 << 20
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
                return self._ask_once(method, self._join(path, query), document, body)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == NOT_FOUND and method in ("GET", "DELETE"):
                    return None
                if error.code not in _AGAIN or not pauses:
                    refused = self.refused(doing, error.code)
                    raise refused from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(error, _NoJson) or not pauses:
                    broken = self._broken(doing, error)
                    raise broken from None
            time.sleep(pauses.pop(0))

    def refused(self, doing: str, status: int) -> TargetFailed:
        """What a status means, in words."""
        what, remedy = _WORDS.get(status, ("it refused", "Look there, or ask who runs it."))
        if status >= http.HTTPStatus.INTERNAL_SERVER_ERROR:
            what, remedy = "it failed", "Try again later."
        if http.HTTPStatus.MULTIPLE_CHOICES <= status < http.HTTPStatus.BAD_REQUEST:
            what, remedy = "it sends one elsewhere, where the token does not go", "Name its own address in site.yaml."
        return TargetFailed(f"{what} ({status}, {doing}).", where=self.name, remedy=remedy)

    def misread(self, doing: str) -> TargetFailed:
        """That a reply is not what the API's documents describe."""
        what = f"what it replied is not what its documents describe ({doing})."
        return TargetFailed(what, where=self.name, remedy="Is that its address, and of a version that is known?")

    def _broken(self, doing: str, error: Exception) -> TargetFailed:
        if isinstance(error, _NoJson):
            return self.misread(doing)
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        kind = type(reason).__name__ if isinstance(reason, Exception) else type(error).__name__
        what = f"it cannot be reached, or the connection was cut ({kind}, {doing})."
        return TargetFailed(what, where=self.name, remedy="Check address and network, and try again.")

    def _join(self, path: str, query: Query | None) -> str:
        return f"{self.base}{path}" + (f"?{urlencode(query)}" if query else "")

    def _ask_once(self, method: str, address: str, document: Any, body: Path | Form | None) -> Any:
        headers = {"Accept": "application/json", "User-Agent": f"release-pipeline/{__version__}", **self.header}
        sent: Any = None
        if document is not None:
            sent, headers["Content-Type"] = json.dumps(document).encode(), "application/json"
        elif isinstance(body, Form):
            sent, more = _write_form(body)
            headers |= more
        elif body is not None:
            sent, headers["Content-Length"] = _read_pieces(body), str(body.stat().st_size)
            headers["Content-Type"] = "application/octet-stream"
        request = urllib.request.Request(address, sent, headers, method=method)  # noqa: S310  see open_server
        with open_request(request, timeout=WAIT_SECONDS) as reply:
            content = reply.read(_LONGEST + 1)
        if not content.strip():
            return None
        try:
            return json.loads(content) if len(content) <= _LONGEST else _refuse()
        except (ValueError, RecursionError):
            raise _NoJson from None


class _NoJson(ValueError):
    """A reply is no JSON."""


def _refuse() -> None:
    raise _NoJson


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


def _read_pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as content:
        while piece := content.read(_PIECE):
            yield piece


def _write_form(form: Form) -> tuple[Iterator[bytes], dict[str, str]]:
    """The form in pieces, for its file may be large; and the headers that it needs."""
    border = secrets.token_hex(16)
    head = "".join(
        f'--{border}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in form.fields.items()
    )
    kind = mimetypes.guess_type(form.file.name)[0] or "application/octet-stream"
    head += f'--{border}\r\nContent-Disposition: form-data; name="{form.name}"; filename="{form.file.name}"\r\n'
    first, last = f"{head}Content-Type: {kind}\r\n\r\n".encode(), f"\r\n--{border}--\r\n".encode()

    def pieces() -> Iterator[bytes]:
        yield first
        yield from _read_pieces(form.file)
        yield last

    length = len(first) + form.file.stat().st_size + len(last)
    return pieces(), {"Content-Type": f"multipart/form-data; boundary={border}", "Content-Length": str(length)}
