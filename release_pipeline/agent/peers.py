"""Whose process is at the other end of a connection within this machine: the agent signs for its own account alone.

Linux lists the sockets of the machine with their accounts. The row that is looked for is the client's: its own end and ours, each
with address and port, for another address of the loopback may have the port of ours. It counts in any state, since who has said
all that they will say waits for an answer nevertheless. A socket that no process holds any more may be listed as root's, whoever
made it: nobody is there to be answered.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

Address = tuple[str, int]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_UNTOLD = (errno.ENOENT, errno.EACCES, errno.EPERM)  # no others: who holds many connections makes that no file can be opened
_TRIES, _WAIT_SECONDS = 5, 0.02  # the table is no picture of one moment: a row can be missed while others come and go


def is_ours(client: Address, own: Address) -> bool:
    """Whether the connection from there comes from this account, as far as the system says it; true where there is no list of
    sockets (only Linux has it), and false where there is one and it has no such connection of ours."""
    for left in reversed(range(_TRIES)):
        try:
            owners = find_owners(client, own)
        except OSError:
            owners = set[int | None]()
        if owners is None:
            return True
        if owners:
            return owners == {os.getuid()}
        if left:
            time.sleep(_WAIT_SECONDS)
    return False


def can_tell() -> bool:
    """Whether the system says whose connections are."""
    return hasattr(os, "getuid") and any(os.access(table, os.R_OK) for table in _TABLES)


def find_owners(client: Address, own: Address) -> set[int | None] | None:
    """The accounts of the sockets whose own end is `client` and whose other end is `own`, `None` for one that no process holds;
    `None` instead of a set where the system has no list."""
    wanted = {(_write(client), _write(own)), (_write_mapped(client), _write_mapped(own))}
    tables = [lines for table in _TABLES if (lines := _read_lines(table)) is not None]
    if not tables or not hasattr(os, "getuid"):
        return None
    return {owner for lines in tables for ends, owner in _list_sockets(lines) if ends in wanted}


def _read_lines(table: Path) -> list[str] | None:
    try:
        return table.read_text(encoding="ascii").splitlines()[1:]
    except OSError as error:
        if error.errno in _UNTOLD:
            return None
        raise


def _list_sockets(lines: list[str]) -> Iterator[tuple[tuple[str, str], int | None]]:
    for parts in map(str.split, lines):
        if len(parts) > 9:
            held = parts[9] != "0"  # its inode
            yield (parts[1], parts[2]), int(parts[7]) if held else None


def _write(address: Address) -> str:
    """An end as the list has it: words of the machine's own order, and the port."""
    host, port = address
    return f"{_write_word(bytes(map(int, host.split('.'))))}:{port:04X}"


def _write_mapped(address: Address) -> str:
    """The same end of a socket of IPv6."""
    words = bytes(10) + b"\xff\xff"
    return "".join(_write_word(words[at : at + 4]) for at in (0, 4, 8)) + _write(address)


def _write_word(word: bytes) -> str:
    return f"{int.from_bytes(word, sys.byteorder):08X}"
