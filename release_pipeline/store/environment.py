"""The resources of the machine and the environment: memory, values of variables, addresses.

The memory that a process of this software may take: the setting of its site, or what the machine, or its container, has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from release_pipeline.errors import SourceError

LEAST = 200 << 20  # bytes: below this nothing runs
DATABASE = Fraction(1, 4)  # of it, for DuckDB, which then spills to disk; the rest is for arrays
PIECE = 256 << 10  # bytes: memory in pieces this large is allocated from the system, and given back to it
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # their numbers in mallopt
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([MGT]i?B)")
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def read_size(text: str) -> int | None:
    """Return the bytes of a size such as 8 GiB or 400 MB; None where it is none.

    >>> read_size("8 GiB"), read_size("400MB"), read_size("8")
    (8589934592, 400000000, None)
    """
    found = _SIZE.fullmatch(text.strip())
    return None if found is None else int(Fraction(found[1]) * _UNITS[found[2]])


def format_size(size: int) -> str:
    """Return bytes as a text for a person.

    >>> format_size(8 << 30), format_size(3 * (1 << 29)), format_size(400 << 20)
    ('8 GiB', '1.5 GiB', '400 MiB')
    """
    if size >= 1 << 30:
        return f"{size / (1 << 30):.1f}".removesuffix(".0") + " GiB"
    return f"{size / (1 << 20):.0f} MiB"


def machine_memory() -> int:
    """Return the bytes of memory that this machine has, or fewer where a container limits it."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in map(Path, _LIMITS):
        try:
            limit = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit():
            size = min(size, int(limit))
    return size


# Texts that people write, with values from the environment in place of ${NAME}, so that no file has a password.


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with every ${NAME} replaced; a name without a value means that the source is missing."""

    def look_up(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise SourceError(
                f"the source is missing: {match[1]} is not set.", remedy=f"Set the environment variable {match[1]}."
            )
        return values[match[1]]

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", look_up, text)


# Addresses of this machine, and of people; judged without loading a network library.


LOCAL = ("localhost", "127.0.0.1", "::1")  # only connections to this machine may be without TLS


_MAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def is_mail(said: Any) -> bool:
    """Return whether something can be a mail address. A public one is judged more strictly (`policy.file.about`)."""
    return isinstance(said, str) and _MAIL.fullmatch(said) is not None


# The library for each kind of object store; known without loading any.


STORES = {"s3": "s3fs", "gs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}  # by the beginning of an address
