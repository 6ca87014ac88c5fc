"""The web process of the desk: serves the application at 127.0.0.1, until told to end.

TLS is a proxy's: what is served here is for browsers on this machine, and for a proxy on it.
"""

from __future__ import annotations

import contextlib
import errno
import socket as sockets
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import uvicorn

from release_pipeline.desk.web.application import Desk, ProxyNames
from release_pipeline.desk.web.client import Client
from release_pipeline.door.addresses import Addresses, local_addresses
from release_pipeline.errors import WrongUsage

_CONNECTION_SECONDS = 5  # a page that stays open is no reason not to end
_QUEUE = 2048  # of connections that nobody has taken yet


@contextlib.contextmanager
def opened_port(port: int) -> Generator[sockets.socket]:
    """Meanwhile the port of this machine is ours: who connects waits until somebody serves."""
    with sockets.socket(sockets.AF_INET, sockets.SOCK_STREAM) as listener:
        listener.setsockopt(
            sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1
        )  # connections of a desk that ended keep nobody from the next one
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(_QUEUE)
        except OSError as error:
            raise _refuse_port(port, in_use=error.errno == errno.EADDRINUSE, why=error.strerror) from None
        yield listener


def _refuse_port(port: int, *, in_use: bool, why: str | None) -> WrongUsage:
    if in_use:
        what, remedy = (
            f"another desk or program has port {port}.",
            f"End it, or name another port, as in --port {_name_other(port)}.",
        )
    else:
        what, remedy = f"port {port} cannot be listened at: {why}.", "Name another port, above 1023."
    return WrongUsage(what, where="--port", remedy=remedy)


def _name_other(port: int) -> int:
    return port + 4 if port + 4 <= 65535 else port - 4  # not the next one, which is the agent's


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
    config = uvicorn.Config(
        Desk(Client(socket), addresses, proxy=proxy),
        http="h11",
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CONNECTION_SECONDS,
    )
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
