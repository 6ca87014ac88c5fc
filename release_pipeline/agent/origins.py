"""Desks as people name them: an origin, and nothing after it; and where they find the agent."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from release_pipeline.errors import WrongUsage

PORT = 8797  # of the agent: where desks look for it
_PORTS = {"https": 443, "http": 80}
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True)
class Origin:
    """Where a desk is: as browsers write it, in `text`."""

    scheme: str
    host: str
    port: int

    @property
    def text(self) -> str:
        """Without the port that its scheme has anyway."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port != _PORTS[self.scheme] else "")

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, so that nobody on the way can read or change anything."""
        return _is_loopback(self.host)


def read_origin(text: str) -> Origin:
    """The origin of a desk: https, or http on this machine; `WrongUsage` for anything else, and for anything after it."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refuse() from None
    rest = (parts.path.removeprefix("/"), parts.query, parts.fragment, parts.username or "", parts.password or "")
    if parts.scheme not in _PORTS or any(rest) or port == 0 or not text.isascii() or not text.isprintable():
        raise _refuse()
    if not _is_address(host) and not _HOST.fullmatch(host):
        raise _refuse()
    found = Origin(parts.scheme, host, port or _PORTS[parts.scheme])
    if found.scheme == "http" and not found.is_loopback:
        raise WrongUsage(
            "a desk that is not on this machine is asked by https alone.",
            where="--desk",
            remedy="Name it as https://desk.example: by http anybody on the way could read and change what it says.",
        )
    return found


def _refuse() -> WrongUsage:
    return WrongUsage(
        "this is not the address of a desk.", where="--desk", remedy="Name it as https://desk.example, with nothing after it."
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
