"""What any page in an operator's browser could do through Dagster's webserver, and cannot through the door."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import dagster as dg
import psutil
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from tests.guards import HANGING
from tests.integration.sites import ROOT, TinySite, make_site

pytestmark = pytest.mark.slow

CANARY = "kanarie-4711"  # in an environment variable, as the address of a database with its password would be
EVIL = "http://evil.example"
JSON = "application/json"
LAUNCH = """mutation L($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename
  ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  ... on RunConfigValidationInvalid { errors { message } } } }"""
SELECTOR = {"repositoryLocationName": "release-pipeline", "repositoryName": "__repository__", "jobName": "release_people"}
STOPPABLE = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def data(self) -> Any:
        """The data of a GraphQL answer."""
        return json.loads(self.text)["data"]


@dataclass
class Server:
    """A server, how it is called, and what whoever is logged in sends."""

    tiny: TinySite
    port: int
    prefixes: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] | None = None
    log: Path | None = None
    process: int = 0

    def ask(self, method: str, path: str, body: bytes | None = None, *, role: str | None = None, **headers: str) -> Answer:
        """One request; `role` sends the cookie of that role, header names have _ for -."""
        sent = {"Host": f"127.0.0.1:{self.port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if role is not None and self.cookies is not None:
            sent["Cookie"] = self.cookies[role]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGING)
        with contextlib.closing(connection):
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode())

    @property
    def prefix(self) -> str:
        """Below which path who operates finds Dagster."""
        return self.prefixes.get("operate", "")

    @property
    def origin(self) -> str:
        """Of its own pages."""
        return f"http://127.0.0.1:{self.port}"

    def post(
        self, query: str, variables: Any = None, *, role: str = "operate", origin: str | None = None, kind: str = JSON
    ) -> Answer:
        """A GraphQL request as a page of that origin posts it."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        return self.ask(
            "POST", f"{self.prefixes.get(role, '')}/graphql", body, role=role, Content_Type=kind, Origin=origin or self.origin
        )

    def connect(self, origin: str | None, *, role: str = "operate", **more: Any) -> ClientConnection:
        """A websocket as a page of that origin opens it."""
        cookies = {} if self.cookies is None else {"Cookie": self.cookies[role]}
        address = f"ws://127.0.0.1:{self.port}{self.prefixes.get(role, '')}/graphql"
        protocols: Any = ["graphql-ws"]
        return connect(
            address, subprotocols=protocols, origin=origin, additional_headers=cookies, proxy=None, open_timeout=HANGING, **more
        )

    def runs(self) -> int:
        """How many runs Dagster knows."""
        with dg.DagsterInstance.from_config(str(self.tiny.site.dagster_home)) as instance:
            return len(instance.get_runs())


def params(config: Any = None, **more: Any) -> dict[str, Any]:
    """The variables of a launch of release 1."""
    tags = [{"key": "dagster/partition", "value": "1"}]
    said = {"selector": SELECTOR, "mode": "default", "executionMetadata": {"tags": tags}, **more}
    return {"params": said if config is None else {**said, "runConfigData": config}}


def inline(query: str, variables: Any) -> str:
    """The path of a GET."""
    return f"/graphql?query={quote(query)}&variables={quote(json.dumps(variables))}"


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def started(command: list[str], *, folder: Path, log: Path, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a session of its own, of which nothing is left."""
    prepared = {"RELEASE_PIPELINE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster"), "PG_ADDRESS": CANARY}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **prepared}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, umask=0
        )
    try:
        yield process
    finally:
        children: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(HANGING)
        except subprocess.TimeoutExpired:
            process.kill()
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()


def wait_for(happened: Callable[[], Any], log: Path) -> Any:
    """What `happened` gives, once it is true; a server that is not there yet refuses connections."""
    end = time.monotonic() + HANGING
    while True:
        with contextlib.suppress(OSError):
            if found := happened():
                return found
        assert time.monotonic() < end, log.read_text()[-3000:]
        time.sleep(0.3)


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Dagster by `release-pipeline ui`, with somebody logged in in each role."""
    folder = tmp_path_factory.mktemp("door")
    server = Server(make_site(folder / "site"), free_port(), log=folder / "log")
    assert server.log is not None
    program = STOPPABLE + "from release_pipeline.apps.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "ui", "--home", str(server.tiny.home), "--port", str(server.port)]
    command += ["--uds", str(folder / "ui.sock")]
    with (
        tunnel(server.port, folder / "ui.sock"),
        started(command, folder=folder, log=server.log, home=server.tiny.home) as process,
    ):
        server.process = process.pid
        wait_for(lambda: process.poll() is not None or "to operate: " in server.log.read_text(), server.log)  # type: ignore[union-attr]
        server.cookies = {}
        for words, role in (("to operate", "operate"), ("to look only", "view")):
            answer = log_in(server, token_of(server, words))
            assert answer.status == 303, answer
            server.prefixes[role] = answer.headers["location"].removesuffix("/asset-groups")
            server.cookies[role] = answer.headers["set-cookie"].partition(";")[0]
        yield server


@contextlib.contextmanager
def tunnel(port: int, path: Path) -> Iterator[None]:
    """What comes to the port goes to the socket, as by `ssh -L PORT:SOCKET` from somebody's own machine."""

    class Carry(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as inside, contextlib.suppress(OSError):
                inside.connect(str(path))
                back = threading.Thread(target=copy, args=(inside, self.request), daemon=True)
                back.start()
                copy(self.request, inside)
                back.join(HANGING)

    class Tunnel(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True

    with Tunnel(("127.0.0.1", port), Carry) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def copy(source: socket.socket, target: socket.socket) -> None:
    """Everything that comes, and its end."""
    with contextlib.suppress(OSError):
        while piece := source.recv(1 << 16):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def token_of(server: Server, words: str) -> str:
    """The token that was printed."""
    assert server.log is not None
    found = re.search(rf"{words}: http://127\.0\.0\.1:{server.port}/login#(\S+)", server.log.read_text())
    assert found is not None, server.log.read_text()
    return found[1]


def log_in(server: Server, token: str, **headers: str) -> Answer:
    """As the page of the login posts its form."""
    form = urlencode({"token": token}).encode()
    sent = {"Origin": server.origin, "Content_Type": "application/x-www-form-urlencoded", **headers}
    return server.ask("POST", "/login", form, **sent)


def test_door_lets_its_own_pages_look_and_operate(door: Server) -> None:
    """Else no refusal below would mean anything: a query in both roles, Dagster's pages, a mutation, a subscription."""
    for role in ("view", "operate"):
        assert door.post("{version}", role=role).data["version"]
        page = door.ask("GET", f"{door.prefixes[role]}/asset-groups", role=role)
        assert page.status == 200
        assert "<!doctype html>" in page.text.lower()
        assert page.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    reloaded = door.post("mutation { reloadWorkspace { __typename } }")
    assert reloaded.data["reloadWorkspace"]["__typename"] == "Workspace"
    with door.connect(door.origin, role="view") as connection:
        connection.send(json.dumps({"type": "connection_init", "payload": {}}))
        assert json.loads(connection.recv(timeout=HANGING)) == {"type": "connection_ack"}
        connection.send(json.dumps({"type": "start", "id": "7", "payload": {"query": LAUNCH, "variables": params()}}))
        refused = json.loads(connection.recv(timeout=HANGING))
        assert (refused["type"], refused["id"]) == ("error", "7")
        assert refused["payload"]["message"] == "Refused: a mutation is not taken here."
        query = 'subscription { pipelineRunLogs(runId: "none") { __typename } }'
        connection.send(json.dumps({"type": "start", "id": "8", "payload": {"query": query}}))
        told = json.loads(connection.recv(timeout=HANGING))
        assert told["payload"]["data"]["pipelineRunLogs"]["__typename"] == "PipelineRunLogsSubscriptionFailure"


def attacks(door: Server) -> dict[str, Callable[[], Answer]]:
    """Each with the cookie of who operates, which browsers add whoever asks."""
    path = door.prefix + inline(LAUNCH, params())
    body = json.dumps({"query": LAUNCH, "variables": params()}).encode()
    graphql = f"{door.prefix}/graphql"

    def post(body: bytes, **headers: str) -> Callable[[], Answer]:
        sent = {"Content_Type": JSON, "Origin": door.origin, **headers}
        return lambda: door.ask("POST", graphql, body, role="operate", **sent)

    def launch(config: Any = None, **more: Any) -> Callable[[], Answer]:
        return lambda: door.post(LAUNCH, params(config, **more))

    twice = json.dumps([{"query": LAUNCH, "variables": params()}] * 2).encode()
    return {
        "link": lambda: door.ask("GET", path, role="operate"),
        "no session": lambda: door.ask("POST", graphql, body, Content_Type=JSON, Origin=door.origin),
        "other origin": post(body, Origin=EVIL),
        "no origin": lambda: door.ask("POST", graphql, body, role="operate", Content_Type=JSON),
        "text": post(body, Content_Type="text/plain"),
        "form": post(body, Content_Type="application/x-www-form-urlencoded"),
        "rebound name": post(body, Host="evil.example:3000", Origin="http://evil.example:3000"),
        "rebound name without a change": lambda: door.ask("GET", f"{door.prefix}/", role="operate", Host="evil.example"),
        "batch": post(twice),
        "view": lambda: door.post(LAUNCH, params(), role="view"),
        "config": launch({"ops": {}}),
        "config env": launch({"resources": {"site": {"config": {"home": {"env": "PG_ADDRESS"}}}}}),
        "tag": launch(executionMetadata={"tags": [{"key": "release-pipeline/process", "value": "x:1:1"}]}),
        "report": lambda: door.ask(
            "POST",
            f"{door.prefix}/report_asset_materialization/people/candidate",
            b"{}",
            role="operate",
            Origin=door.origin,
            Content_Type=JSON,
        ),
        "wipe": lambda: door.post("mutation { wipeAssets(assetPartitionRanges: []) { __typename } }"),
        "settings": lambda: door.post("{ instance { info } }"),
    }


def test_no_attack_gets_through_the_door(door: Server) -> None:
    """Refused each, in words that repeat nothing, and nothing was launched."""
    before = door.runs()
    let_in: dict[str, Answer] = {}
    for name, attack in attacks(door).items():
        answer = attack()
        if not 400 <= answer.status < 500:
            let_in[name] = answer
        else:
            assert json.loads(answer.text)["errors"][0]["message"].startswith("Refused: "), name
        assert CANARY not in answer.text
        assert EVIL not in answer.text
    assert let_in == {}
    assert door.runs() == before


def test_websocket_of_another_page_is_not_opened(door: Server) -> None:
    """Nor one without an origin, of another port, of a name that was rebound, or without a session."""
    for origin in (EVIL, None, "null", "http://127.0.0.1:1"):
        with pytest.raises(WebSocketException):
            door.connect(origin)
    stranger = Server(door.tiny, door.port, door.prefixes)
    with pytest.raises(WebSocketException):
        stranger.connect(door.origin)


def test_token_is_asked_for_by_a_page_that_no_other_can_frame(door: Server) -> None:
    """A wrong one, and one posted by another page, begin no session; the cookie is for our path and scripts cannot read it."""
    page = door.ask("GET", "/login")
    assert page.status == 200
    assert page.headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    many = door.ask("POST", "/login", b"a=1&b=2&c=3&d=4&e=5&token=x", Origin=door.origin)
    for answer in (many, log_in(door, "x"), log_in(door, ""), log_in(door, token_of(door, "to operate"), Origin=EVIL)):
        assert answer.status == 403
        assert "set-cookie" not in answer.headers
    cookie = log_in(door, token_of(door, "to operate")).headers["set-cookie"]
    assert f"Path={door.prefix};" in cookie
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    assert len(door.prefix) > 20, "a server at another port of this machine would be sent the cookie"
    assert door.prefix != door.prefixes["view"], "who may look would know where the cookie of who operates is sent"


def test_who_logs_out_is_out(door: Server) -> None:
    """The cookie says nothing any more, and a websocket that is open is closed with the next message."""
    cookie = log_in(door, token_of(door, "to look only")).headers["set-cookie"].partition(";")[0]
    leaving = Server(door.tiny, door.port, door.prefixes, {"view": cookie})
    logout = f"{door.prefixes['view']}/logout"
    with leaving.connect(door.origin, role="view") as connection:
        connection.send(json.dumps({"type": "connection_init"}))
        assert connection.recv(timeout=HANGING)
        assert leaving.ask("POST", logout, b"", role="view", Origin=EVIL).status == 403
        assert leaving.post("{version}", role="view").status == 200
        assert leaving.ask("POST", logout, b"", role="view", Origin=door.origin).status == 303
        assert leaving.post("{version}", role="view").status == 401
        connection.send(json.dumps({"type": "connection_init"}))
        with pytest.raises(WebSocketException):
            connection.recv(timeout=HANGING)


def test_a_release_is_launched_through_the_door(door: Server) -> None:
    """With the page's own origin and without config: one run, which the daemon takes to its candidate."""
    before = door.runs()
    answer = door.post(LAUNCH, params("{}\n"))
    assert answer.data["launchRun"]["__typename"] == "LaunchRunSuccess", answer
    assert door.runs() == before + 1
    assert door.log is not None
    wait_for(lambda: door.tiny.status().state == "candidate", door.log)


def test_no_other_account_reaches_a_socket(door: Server) -> None:
    """Whatever the umask is: not that of the UI, nor those of Dagster's code servers, which start runs for whoever connects."""
    server = psutil.Process(door.process)
    sockets = {
        Path(connection.laddr)
        for process in (server, *server.children(recursive=True))
        for connection in process.net_connections("unix")
        if connection.laddr
    }
    assert len(sockets) >= 3
    for path in sockets:
        modes = [path.stat().st_mode & 0o077, path.parent.stat().st_mode & 0o077]
        assert 0 in modes or (path.name, modes[0]) == ("ui.sock", 0o060), (path, modes)


def test_nothing_that_logs_in_is_printed_again(door: Server) -> None:
    """Neither the tokens a second time, nor cookies or bodies."""
    assert door.log is not None
    assert door.cookies is not None
    printed = door.log.read_text()
    for words in ("to operate", "to look only"):
        assert printed.count(token_of(door, words)) == 1
    assert not [cookie for cookie in door.cookies.values() if cookie.partition("=")[2] in printed]
    assert "launchRun(" not in printed
