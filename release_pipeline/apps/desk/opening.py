"""Opens the desk: its two parts, on two accounts or, for a trial, on one."""

from __future__ import annotations

import asyncio
import contextlib
import pwd
import socket as sockets
from collections.abc import Callable, Generator
from pathlib import Path

from release_pipeline.apps.desk.backend.people import read_people
from release_pipeline.apps.desk.backend.server import serving_backend
from release_pipeline.apps.desk.backend.service import GREET, Backend
from release_pipeline.apps.desk.backend.signing import clear_folder
from release_pipeline.apps.desk.web.application import Desk, ProxyNames
from release_pipeline.apps.desk.web.frame import Client
from release_pipeline.apps.door import (
    ProxyHeaders,
    Refused,
    Server,
    configure_server,
    local_addresses,
    opened_listener,
    proxy_addresses,
    read_proxy_file,
)
from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.store.site import Site

_HEADERS, _LISTS = ("secret_header", "person_header"), ("hosts",)


def read_proxy(file: Path) -> ProxyHeaders:
    """Return the proxy in front of the desk that a file describes."""
    parts = read_proxy_file(file, headers=_HEADERS, lists=_LISTS)
    return ProxyHeaders(parts["secret"], parts["secret_header"], parts["person_header"], tuple(parts["hosts"]))


def find_account(name: str) -> int:
    """Return the number of an account of this machine."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        remedy = "Name the one that the web process runs on."
        raise WrongUsage("this machine has no such account.", where=name, remedy=remedy) from None


def default_socket(site: Site) -> Path:
    """Return the default socket of the backend: only the site's account can reach it."""
    return site.desk / "backend.sock"


@contextlib.contextmanager
def opened_backend(
    site: Site, socket: Path, *, accounts: frozenset[int] = frozenset(), proxy: ProxyHeaders | None = None
) -> Generator[None]:
    """Answer as the backend at a socket, in a thread, while the block runs."""
    read_people(site)  # reports faults of the site here, and not to the first person who comes
    with site.changing_desk():  # its folder is there
        pass
    with serving_backend(socket, Backend(site, proxy=proxy), accounts):
        clear_folder(site)
        yield


def serve_web(
    socket: Path,
    *,
    port: int,
    uds: Path | None = None,
    also: tuple[str, ...] = (),
    ready: Callable[[str], None],
    listener: sockets.socket | None = None,
) -> None:
    """Serve the pages, and call `ready` with their address. They listen at the Unix socket `uds`, or else at the port;
    `listener`: a socket that the caller has opened already."""
    with contextlib.nullcontext(listener) if listener is not None else opened_listener(port, uds) as opened:
        try:
            greeting = asyncio.run(Client(socket).ask(GREET)).document
        except Refused as refused:
            raise ReleasePipelineError(refused.words, where=str(socket), remedy="Start it first, then this.") from None
        hosts = tuple(str(host) for host in greeting["hosts"])
        proxy = ProxyNames(str(greeting["secret_header"]), str(greeting["person_header"])) if hosts else None
        names = hosts or (also if uds is not None else ())  # a socket is reached through a proxy, or by a tunnel to the port
        address = f"https://{names[0]}" if names else f"http://127.0.0.1:{port}"
        addresses = proxy_addresses(hosts) if proxy else local_addresses(port, also)
        config = configure_server(Desk(Client(socket), addresses, proxy=proxy), ws="none", lifespan="off")
        Server(config, lambda: ready(address)).run([opened])
