"""Questions to the counter, from the web process. It has no other way to the site."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from release_pipeline.desk.limits import LONGEST_BODY, LONGEST_LINE
from release_pipeline.door.refusal import Refused

_SECONDS = 120  # for what is computed there: an audit's page, a package that is verified
_PIECE = 1 << 18
AWAY = "the site's counter does not answer. The operator starts it: release-pipeline desk counter."


@dataclass(frozen=True, slots=True)
class Who:
    """By what the browser says who it is."""

    session: str = ""
    place: str = ""
    proxy: tuple[tuple[str, str], ...] = ()


NOBODY = Who()


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: a document, or a file's bytes, piece by piece."""

    status: int
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    media: str = ""
    name: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    size: int = 0
    pieces: Iterator[bytes] | None = None

    @property
    def content(self) -> bytes:
        """All of a file."""
        return b"".join(self.pieces or ())


class Client:
    """Asks the counter at a socket."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def ask(self, call: str, who: Who = NOBODY, arguments: Mapping[str, str] | None = None, body: bytes = b"") -> Told:
        """The answer; `Refused` where nobody answers."""
        line = {
            "call": call,
            "arguments": dict(arguments or {}),
            "size": len(body),
            "session": who.session,
            "place": who.place,
            "proxy": who.proxy,
        }
        said = json.dumps(line).encode() + b"\n"
        if len(said) > LONGEST_LINE or len(body) > LONGEST_BODY:
            raise Refused(413, "this is longer than anything that the desk takes.")
        try:
            stream = self._send(said + body)
        except OSError:
            raise Refused(503, AWAY) from None
        try:
            head = json.loads(stream.readline())
            if "media" not in head:
                with stream:
                    return Told(head["status"], json.loads(_read(stream, head["size"])))
            pieces = _read_pieces(stream, head["size"])
            return Told(head["status"], {}, head["media"], head["name"], head["facts"], head["size"], pieces)
        except (OSError, ValueError, KeyError):
            stream.close()
            raise Refused(503, AWAY) from None

    def _send(self, question: bytes) -> IO[bytes]:
        """The stream of the answer: who closes it closes the connection."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_SECONDS)
            connection.connect(self._path)
            connection.sendall(question)
            return connection.makefile("rb")  # which has the connection open until it is closed


def _read(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        raise ValueError
    return content


def _read_pieces(stream: IO[bytes], size: int) -> Iterator[bytes]:
    with stream:
        while size:
            piece = stream.read(min(_PIECE, size))
            if not piece:
                raise OSError("the counter stopped in the middle of a file")
            size -= len(piece)
            yield piece
