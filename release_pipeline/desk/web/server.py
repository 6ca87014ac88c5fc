"""The web process of the desk: serves the application at 127.0.0.1, until told to end.

TLS is a proxy's: what is served here is for browsers on this machine, and for a proxy on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import uvicorn

from release_pipeline.desk.web.application import Desk, ProxyNames
from release_pipeline.desk.web.client import Client
from release_pipeline.door.addresses import Addresses, local_addresses

_CONNECTION_SECONDS = 5  # a page that stays open is no reason not to end


def serve(
    socket: Path,
    *,
    port: int,
    also: Iterable[str] = (),
    proxy: ProxyNames | None = None,
    hosts: Iterable[str] = (),
    ready: Callable[[], None],
) -> None:
    """Serve pages until the process is told to end; `ready` is called when they can be asked for. `hosts`: the names of the proxy
    in front, which alone are answered to then."""
    names = frozenset(host.lower() for host in hosts)
    addresses = Addresses(names, frozenset(f"https://{host}" for host in names)) if proxy else local_addresses(port, also)
    config = uvicorn.Config(
        Desk(Client(socket), addresses, proxy=proxy),
        host="127.0.0.1",
        port=port,
        http="h11",
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CONNECTION_SECONDS,
    )
    _Server(config, ready).run()


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()
