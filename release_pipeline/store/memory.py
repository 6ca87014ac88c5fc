"""How much memory a process of this software may take: what its site says, or what the machine, or its container, has."""

from __future__ import annotations

import os
import re
from fractions import Fraction
from pathlib import Path

LEAST = 200 << 20  # bytes: below this nothing runs
DATABASE = Fraction(1, 4)  # of it, for DuckDB, which then goes on on disk; the rest is for arrays
PIECE = 256 << 10  # bytes: memory asked for in so large pieces is had from the system, and given back to it
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as mallopt calls them
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([MGT]i?B)")
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def read_size(text: str) -> int | None:
    """Bytes of a size such as 8 GiB or 400 MB; None where it is none.

    >>> read_size("8 GiB"), read_size("400MB"), read_size("8")
    (8589934592, 400000000, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else int(Fraction(found[1]) * _UNITS[found[2]])


def format_size(size: int) -> str:
    """Bytes for a person.

    >>> format_size(8 << 30), format_size(3 * (1 << 29)), format_size(400 << 20)
    ('8 GiB', '1.5 GiB', '400 MiB')
    """
    if size >= 1 << 30:
        return f"{size / (1 << 30):.1f}".removesuffix(".0") + " GiB"
    return f"{size / (1 << 20):.0f} MiB"


def machine_memory() -> int:
    """What this machine has, or less where a container limits it."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for place in map(Path, _LIMITS):
        try:
            said = place.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if said.isdigit():
            found = min(found, int(said))
    return found
