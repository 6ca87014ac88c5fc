"""Whose process is at the other end of a connection within this machine: the agent signs for its own account alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def is_ours(client_port: int, own_port: int) -> bool:
    """Whether the connection from that port comes from this account; true too where the system does not say (only Linux does)."""
    return not hasattr(os, "getuid") or find_owner(client_port, own_port) in (None, os.getuid())


def find_owner(client_port: int, own_port: int) -> int | None:
    """The account of the socket at the client's end, as Linux lists it; None where there is no such list."""
    wanted = (f"{client_port:04X}", f"{own_port:04X}")
    for local, remote, owner in _list_sockets():
        if (local.rpartition(":")[2], remote.rpartition(":")[2]) == wanted:
            return owner
    return None


def _list_sockets() -> Iterator[tuple[str, str, int]]:
    for table in _TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except (OSError, UnicodeDecodeError):
            continue
        for parts in (line.split() for line in lines):
            if len(parts) > 7 and parts[3] == "01":  # an established connection: what is over belongs to nobody
                yield parts[1], parts[2], int(parts[7])
