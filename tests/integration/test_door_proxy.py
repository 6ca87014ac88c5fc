"""The door behind a reverse proxy, as a real server around an application that says what it was given."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from release_pipeline.apps.dagster.door import ROLE, Door, read_proxy
from release_pipeline.apps.dagster.judge import Role
from release_pipeline.apps.dagster.machines import Machines
from release_pipeline.apps.door import configure_server
from release_pipeline.store.site import Site
from tests.guards import HANGING

SHARED = "0123456789abcdef0123456789abcdef"
FILE = """
hosts: [ui.example.org]
secret_file: proxy.secret
secret_header: X-Door-Secret
person_header: X-Forwarded-User
groups_header: X-Forwarded-Groups
view: [auditors]
operate: [stewards, data-team]
"""
HOST = {"Host": "ui.example.org"}
CAME = {**HOST, "X-Door-Secret": SHARED, "X-Forwarded-User": "eva"}
MUTATION = "mutation { reloadWorkspace { __typename } }"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """In the place of Dagster: the role, the headers and the body that it was given."""
    body = (await receive()).get("body", b"") if scope["method"] == "POST" else b""
    told = {"role": scope[ROLE].value, "headers": sorted(name.decode() for name, _ in scope["headers"]), "body": body.decode()}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})


def write_proxy(folder: Path, text: str = FILE, secret: str = SHARED, mode: int = 0o600) -> Path:
    """The file of a trusted proxy, with its secret beside it."""
    (folder / "proxy.secret").write_text(f"{secret}\n")
    (folder / "proxy.secret").chmod(mode)
    (folder / "proxy.yaml").write_text(text)
    return folder / "proxy.yaml"


@contextmanager
def served(door: Door) -> Iterator[int]:
    """The port of a real server."""
    server = uvicorn.Server(configure_server(door, port=0, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + HANGING
    while not server.started:
        assert time.monotonic() < end
        time.sleep(0.05)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(HANGING)


def machines_of(home: Path) -> Machines:
    """Who answers machines, of a site where nothing has happened."""
    return Machines(Site(home, {}), heartbeat=lambda: None)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A door that trusts the proxy."""
    proxy = read_proxy(write_proxy(tmp_path_factory.mktemp("proxy")))
    with served(
        Door(
            {"": echo},
            way=proxy,
            addresses=proxy.addresses,
            most=Role.OPERATE,
            machines=machines_of(tmp_path_factory.mktemp("site")),
        )
    ) as port:
        yield port


def ask(port: int, headers: list[tuple[str, str]], body: bytes | None = None) -> tuple[int, dict[str, Any]]:
    """One request with just these headers, which may stand twice."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING)) as connection:
        connection.putrequest("GET" if body is None else "POST", "/overview" if body is None else "/graphql", skip_host=True)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def post(port: int, groups: str, origin: str = "https://ui.example.org") -> tuple[int, dict[str, Any]]:
    """A mutation of somebody of these groups."""
    headers = {**CAME, "X-Forwarded-Groups": groups, "Origin": origin, "Content-Type": "application/json"}
    return ask(port, list(headers.items()), json.dumps({"query": MUTATION}).encode())


@pytest.mark.parametrize(
    ("groups", "role"),
    [("auditors", "view"), ("x, data-team", "operate"), ("", None)],
)
def test_groups_of_the_proxy_are_roles(port: int, groups: str, role: str | None) -> None:
    """Who operates may look too; Dagster is given nothing of what says who it is."""
    status, told = ask(port, [*CAME.items(), ("X-Forwarded-Groups", groups), ("Cookie", "a=b"), ("Authorization", "c")])
    assert (status, told.get("role")) == ((200, role) if role else (403, None))
    assert not {"x-door-secret", "x-forwarded-user", "x-forwarded-groups", "cookie", "authorization"} & set(
        told.get("headers", ())
    )


def test_roles_and_origins_hold_behind_the_proxy_too(port: int) -> None:
    """The proxy's cookie is sent whoever asks: the origin of a change must be the proxy's own, and by TLS."""
    status, told = post(port, "stewards")
    assert (status, json.loads(told["body"])["query"]) == (200, MUTATION)
    assert post(port, "auditors")[0] == 403
    assert [post(port, "stewards", origin)[0] for origin in ("https://evil.example", "http://ui.example.org", "null")] == [
        403
    ] * 3
