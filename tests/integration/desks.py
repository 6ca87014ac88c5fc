"""A desk in process: a backend of a small site, the pages before it, and people with browsers that do as browsers do."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import httpx
import uvicorn

from release_pipeline.apps.desk.backend.people import make_token
from release_pipeline.apps.desk.backend.server import Application, serving_backend
from release_pipeline.apps.desk.backend.service import Backend, Sessions
from release_pipeline.apps.desk.web.application import Desk, ProxyNames
from release_pipeline.apps.desk.web.frame import BackendAnswer, Client
from release_pipeline.apps.door import ProxyHeaders, configure_server, local_addresses
from tests.guards import HANGING
from tests.integration.sites import TinySite

PORT = 8796
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
AUDITOR, OPERATOR, NEITHER = "vic", "otto", "nina"  # people without keys, whom site.yaml names; and one whom it does not
PEOPLE = f"{{{AUDITOR}: [auditor], {OPERATOR}: [operator]}}"  # as site.yaml names them
ROLES = {"steward": "ana", "reviewer": "ben", "officer": "olga", "auditor": AUDITOR, "operator": OPERATOR}  # who stands for each
_BOUNDARY = "----boundary"


class Direct(Client):
    """Asks a backend without a socket, through the same bytes."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(Path("none"), transport=httpx.ASGITransport(Application(backend)))
        self.asked: list[str] = []  # the calls, by name

    async def ask(self, call: str, *given: Any, **named: Any) -> BackendAnswer:
        self.asked.append(call)
        return await super().ask(call, *given, **named)


@dataclass(frozen=True)
class Page:
    """What a browser was answered."""

    status: int
    headers: Sequence[tuple[str, str]]
    content: bytes

    @property
    def text(self) -> str:
        """As text."""
        return self.content.decode("utf-8", "replace")

    def header(self, name: str) -> str:
        """A header that stands once, or not at all (the empty text)."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) <= 1, (name, found)
        return found[0] if found else ""

    @property
    def elements(self) -> list[tuple[str, dict[str, str]]]:
        """Every tag that is opened, with its attributes."""
        reader = _Reader()
        reader.feed(self.text)
        reader.close()
        return reader.found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


@dataclass
class Browser:
    """Keeps cookies by their paths, sends Origin with what it posts, and follows to where it is sent."""

    desk: Any
    host: str = HOST
    scheme: str = "http"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  # of a proxy before the desk
    cookies: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])  # name, value, path
    base: str = ""  # the path of the session
    token: str = ""  # of the forms of the session

    def send(
        self, method: str, address: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"", follow: bool = True
    ) -> Page:
        """One request, and those to where it leads. A header with the empty text is not sent."""
        path, _, query = address.partition("#")[0].partition("?")
        given = {"host": self.host, "sec-fetch-site": "same-origin", **self.headers}
        if cookie := "; ".join(f"{name}={value}" for name, value, at in self.cookies if path == at or path.startswith(f"{at}/")):
            given["cookie"] = cookie
        if method == "POST":
            given |= {"origin": f"{self.scheme}://{self.host}", "content-type": "application/x-www-form-urlencoded"}
        given = {name: value for name, value in {**given, **(headers or {})}.items() if value}
        page = ask(self.desk, method, path, query, list(given.items()), body)
        for name, value in page.headers:
            if name == "set-cookie":
                self._keep(value)
        if page.status == 303 and follow:
            found = urlsplit(page.header("location"))
            assert not found.netloc, "the desk sends nobody elsewhere"
            return self.send("GET", f"{found.path}?{found.query}" if found.query else found.path)
        return page

    def _keep(self, value: str) -> None:
        first, *more = [part.strip() for part in value.split(";")]
        name, _, content = first.partition("=")
        said = {key.lower(): word for key, _, word in (part.partition("=") for part in more)}
        self.cookies = [one for one in self.cookies if (one[0], one[2]) != (name, said["path"])]
        if said.get("max-age") != "0":
            self.cookies.append((name, content.strip('"'), said["path"]))

    def log_in(self, token: str) -> Page:
        """As with a link; its pages are below `base` then."""
        page = self.send("POST", "/login", body=urlencode({"token": token}).encode(), follow=False)
        if page.status == 303:
            self.base = page.header("location").rstrip("/")
            page = self.send("GET", f"{self.base}/")
            self.read_token(page)
        return page

    def read_token(self, page: Page) -> None:
        """What the forms of this page have, and so those of every page of the session."""
        tokens = {said["value"] for tag, said in page.elements if tag == "input" and said.get("name") == "desk"}
        [self.token] = tokens

    def get(self, path: str, **how: Any) -> Page:
        """A page of the session."""
        return self.send("GET", self.base + path, **how)

    def post(
        self, path: str, form: Mapping[str, str] | None = None, files: Mapping[str, bytes] | None = None, **how: Any
    ) -> Page:
        """A form of the session, or one with files that were chosen for its field `files`."""
        fields = {"desk": self.token, **(form or {})}
        if files is None:
            return self.send("POST", self.base + path, body=urlencode(fields).encode(), **how)
        kind = {"content-type": f"multipart/form-data; boundary={_BOUNDARY}", **how.pop("headers", {})}
        return self.send("POST", self.base + path, headers=kind, body=write_parts(fields, files), **how)


def find_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_parts(fields: Mapping[str, str], files: Mapping[str, bytes]) -> bytes:
    """A form as browsers send it that has files."""
    parts = [
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    for name, content in files.items():
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n'
        parts.append(f"{head}Content-Type: application/octet-stream\r\n\r\n".encode() + content + b"\r\n")
    return b"".join(parts) + f"--{_BOUNDARY}--\r\n".encode()


def ask(desk: Any, method: str, path: str, query: str = "", headers: Sequence[tuple[str, str]] = (), body: bytes = b"") -> Page:
    """One request with just these headers, without a server."""
    return asyncio.run(_ask(desk, method, path, query, headers, body))


async def _ask(desk: Any, method: str, path: str, query: str, headers: Sequence[tuple[str, str]], body: bytes) -> Page:
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path, "utf-8", "replace"),
        "raw_path": path.encode("utf-8", "surrogateescape"),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", PORT),
    }
    sent: list[dict[str, Any]] = []
    pieces = [body[start : start + 65536] for start in range(0, len(body), 65536)] or [b""]

    async def receive() -> dict[str, Any]:
        if pieces:
            piece = pieces.pop(0)
            return {"type": "http.request", "body": piece, "more_body": bool(pieces)}
        await asyncio.sleep(HANGING)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(dict(message))

    await desk(scope, receive, send)
    [start, *rest] = sent
    told = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in start["headers"]]
    return Page(start["status"], told, b"".join(message.get("body", b"") for message in rest))


@dataclass(frozen=True)
class OpenDesk:
    """A desk that is open, and who comes to it."""

    tiny: TinySite
    backend: Backend
    client: Client
    desk: Desk
    socket: Path | None = None  # of the backend: clients are of one event loop

    def open(self, person: str = "") -> Browser:
        """A browser in which this person is logged in, or nobody."""
        browser = Browser(self.desk)
        if person:
            assert browser.log_in(make_token(self.tiny.site, person)).status == 200
        return browser


def open_desk(tiny: TinySite, *, proxy: ProxyHeaders | None = None, sessions: Sessions | None = None) -> OpenDesk:
    """The desk of a site, without a socket. An auditor and an operator are there, unless the site has a site.yaml of its own."""
    add_people(tiny)
    backend = Backend(tiny.site, proxy=proxy, sessions=sessions)
    return _open(tiny, backend, Direct(backend), proxy)


@contextmanager
def serving_desk(tiny: TinySite, path: Path, *, accounts: frozenset[int] = frozenset()) -> Iterator[OpenDesk]:
    """Likewise with the backend behind a real socket, in a thread."""
    add_people(tiny)
    backend = Backend(tiny.site)
    with serving_backend(path, backend, accounts):
        yield replace(_open(tiny, backend, Client(path), None), socket=path)


@contextmanager
def serving_pages(desk: OpenDesk) -> Iterator[int]:
    """The port of a real server of the pages, which know their name."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        pages = Desk(Client(desk.socket) if desk.socket else desk.client, local_addresses(port))
        server = uvicorn.Server(configure_server(pages, ws="none", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        end = time.monotonic() + HANGING
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.02)
        try:
            yield port
        finally:
            server.should_exit = server.force_exit = True
            thread.join(HANGING)


def add_people(tiny: TinySite) -> None:
    """An auditor and an operator, where site.yaml says nothing of the desk yet."""
    file = tiny.home / "site.yaml"
    if not file.exists() or "desk:" not in file.read_text():
        name_people(tiny, PEOPLE)


def name_people(tiny: TinySite, said: str) -> None:
    """What site.yaml says of the desk's people from now on; the rest of it stays."""
    file = tiny.home / "site.yaml"
    lines = [line for line in (file.read_text() if file.exists() else "").splitlines() if not line.startswith("desk:")]
    file.write_text("".join(f"{line}\n" for line in [*lines, f"desk: {{people: {said}}}"]))


def _open(tiny: TinySite, backend: Backend, client: Client, proxy: ProxyHeaders | None) -> OpenDesk:
    names = None if proxy is None else ProxyNames(proxy.secret_header, proxy.person_header)
    addresses = local_addresses(PORT) if proxy is None else proxy.addresses
    return OpenDesk(tiny, backend, client, Desk(client, addresses, proxy=names))


RELEASE = "people/1/r1"
KNOWN = {"release": RELEASE, "policy": "people", "population": "folk", "what": "policy", "subject": "people", "name": "people"}


def fill_path(path: str, **known: str) -> str:
    """The path of a page with names of the small site, or those that are given, where it has places for them."""
    values = {**KNOWN, **known}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: values.get(found[1], "people"), path)


def read_everything(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: its modes, and what is in it."""
    return {
        str(file.relative_to(home)): (file.stat().st_mode, file.read_bytes() if file.is_file() else b"")
        for file in sorted(home.rglob("*"))
        if not file.is_socket()
    }
