"""One request of the web process to the backend: JSON that both sides read and write by the same type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

LONGEST = 1 << 23  # bytes of a request: the web process sends no longer one, and the backend reads no longer one
FILE_HEADER = "x-desk-file"  # of an answer that is a file: its name and facts, as JSON
_STRICT = ConfigDict(strict=True, extra="forbid")


@dataclass(frozen=True, slots=True, config=_STRICT)
class CallRequest:
    """A call by name, with its arguments and body, and the browser's credentials. `path`: of the session."""

    call: str
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""
    session: str = ""
    path: str = ""
    proxy: tuple[tuple[str, str], ...] = ()  # headers that a trusted proxy set


REQUESTS = TypeAdapter(CallRequest)
