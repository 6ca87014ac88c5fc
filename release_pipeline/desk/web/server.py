"""The web process of the desk: serves the application until told to end.

TLS is a proxy's: what is served here is for browsers on this machine, and for a proxy on it.
"""

from __future__ import annotations

import socket as sockets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import uvicorn

from release_pipeline.desk.web.application import Desk, ProxyNames
from release_pipeline.desk.web.client import Client
from release_pipeline.door.addresses import Addresses, local_addresses
from release_pipeline.door.serving import configure_server


def serve(
    socket: Path,
    *,
    listener: sockets.socket,
    port: int,
    also: Iterable[str] = (),
    proxy: ProxyNames | None = None,
    hosts: Iterable[str] = (),
    ready: Callable[[], None],
) -> None:
    """Serve pages at `listener` until the process is told to end; `ready` is called when they can be asked for. `hosts`: the
    names of the proxy in front, which alone are answered to then."""
    names = frozenset(host.lower() for host in hosts)
    addresses = Addresses(names, frozenset(f"https://{host}" for host in names)) if proxy else local_addresses(port, also)
    config = configure_server(Desk(Client(socket), addresses, proxy=proxy), ws="none")
    _Server(config, ready).run([listener])


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
