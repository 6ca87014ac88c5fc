"""A desk as an agent sees it: tickets, bundles, and what it was given. And an agent, with a browser's requests."""

from __future__ import annotations

import http.client
import json
import re
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from release_pipeline.agent.desk import Desk
from release_pipeline.agent.origins import read_origin
from release_pipeline.agent.reviews import Reviews
from release_pipeline.agent.server import Agent

from release_pipeline.sign import Signer
from tests.guards import HANGING

Answer = Callable[[BaseHTTPRequestHandler], None]


def find_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Given:
    """What a ticket is for, and what came of it."""

    document: dict[str, Any]
    bundle: bytes
    status: int = 200
    words: str = "Noted, thank you."
    statements: list[dict[str, Any]] = field(default_factory=list)


class FakeDesk(ThreadingHTTPServer):
    """Answers on a free port, by TLS where it has a certificate. `special` has answers by path that are not a desk's."""

    daemon_threads = True

    def __init__(self, certificate: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.scheme = "http" if certificate is None else "https"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.tickets: dict[str, Given] = {}
        self.special: dict[str, Answer] = {}
        self.asked: list[str] = []

    @property
    def origin(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    @contextmanager
    def dripping(self, path: str) -> Iterator[None]:
        """Meanwhile what is asked for there never ends, though a bit more always comes."""
        over = threading.Event()

        def drip(request: BaseHTTPRequestHandler) -> None:
            request.send_response(200)
            request.send_header("Content-Length", "1000000")
            request.end_headers()
            try:
                while not over.wait(0.02):
                    request.wfile.write(b" ")
            except OSError:
                over.set()

        self.special[path] = drip
        try:
            yield
        finally:
            over.set()

    def give(self, bundle: Path, person: str, *, verdict: str = "approve", why: str = "", **other: Any) -> str:
        """A ticket for a bundle."""
        ticket = secrets.token_urlsafe(24)
        document = {
            "format": "release-pipeline/ticket/1",
            "person": person,
            "what": "candidate",
            "subject": "people/1/r1",
            "wish": {"verdict": verdict, "why": why},
            "back": "/releases/people/1",
        }
        self.tickets[ticket] = Given({**document, **other}, bundle.read_bytes())
        return ticket


class _Answering(BaseHTTPRequestHandler):
    server: FakeDesk

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body: bytes) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if (special := self.server.special.get(self.path)) is not None:
            special(self)
            return
        ticket, *rest = self.path.split("/")[2:] or [""]
        given = self.server.tickets.get(ticket)
        if given is None:
            self.send(404, {"words": "There is no such ticket."})
        elif self.command == "POST":
            if given.status == 200:
                given.statements = json.loads(body)["statements"]
                del self.server.tickets[ticket]
            self.send(given.status, {"words": given.words})
        elif rest == ["bundle"]:
            self.send_bytes(200, given.bundle, "application/zip")
        else:
            self.send(200, given.document)

    def send(self, status: int, document: dict[str, Any]) -> None:
        self.send_bytes(status, json.dumps(document).encode(), "application/json")

    def send_bytes(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@dataclass(frozen=True)
class Shown:
    """What a browser got."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def token(self) -> str:
        """The token of a page's forms."""
        return re.findall(r'name="token" value="([^"]+)"', self.text)[0]


@dataclass
class Machine:
    """Somebody's machine: the agent, and a browser that is as careful or careless as the test says."""

    agent: Agent
    told: list[str]
    pages: list[str] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """Where bundles are unpacked."""
        return self.agent.reviews._folder

    def ask(self, method: str, path: str, body: str = "", **headers: str) -> Shown:
        """One request, with these headers in place of a usual browser's; those that are empty are left out."""
        usual = {"Host": self.agent.host, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        usual["Sec-Fetch-Site"] = "cross-site" if path.startswith("/?") else "same-origin"
        if method == "POST":
            usual |= {"Origin": f"http://{self.agent.host}", "Content-Type": "application/x-www-form-urlencoded"}
            usual["Content-Length"] = str(len(body))
        usual |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.agent.server_address[1], timeout=HANGING)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in usual.items():
            if value:
                connection.putheader(name, value)
        connection.endheaders(body.encode())
        with connection.getresponse() as response:
            shown = Shown(response.status, dict(response.headers), response.read().decode())
        connection.close()
        self.pages.append(shown.text + json.dumps(shown.headers))
        return shown

    def open(self, desk: FakeDesk, ticket: str, origin: str = "") -> Shown:
        """Follow the desk's link, to the end."""
        shown = self.ask("GET", "/?" + urlencode({"desk": origin or desk.origin, "ticket": ticket}))
        return self.ask("GET", shown.headers["Location"]) if shown.status == 303 else shown

    def send(self, page: Shown, **fields: str) -> Shown:
        """Send a form of the page."""
        path = re.findall(r'action="([^"]+)"', page.text)[0]
        return self.ask("POST", path, urlencode({"token": page.token, **fields}))


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """A server that answers in a thread."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(HANGING)


@contextmanager
def open_desk(certificate: Path | None = None) -> Iterator[FakeDesk]:
    """A desk that answers."""
    desk = FakeDesk(certificate)
    with running(desk):
        yield desk


@contextmanager
def open_agent(origins: list[str], signers: list[Signer], *, once: bool = False) -> Iterator[Machine]:
    """An agent that answers."""
    told: list[str] = []
    desks = [Desk(read_origin(origin)) for origin in origins]
    with Reviews(desks, signers) as reviews:
        agent = Agent(reviews, port=0, once=once, tell=told.append)
        with running(agent):
            yield Machine(agent, told)
