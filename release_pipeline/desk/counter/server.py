"""The counter's socket: a question a connection, answered by a thread. Only the accounts that it is for are heard.

A question is a line of JSON and a body as long as the line says; so is an answer. No port is open, and no other machine can ask.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

from release_pipeline.desk.counter.service import Answer, Counter, Question
from release_pipeline.desk.limits import LONGEST_BODY, LONGEST_LINE
from release_pipeline.errors import ReleasePipelineError, WrongUsage

_SECONDS = 30  # to send a question, and for each piece of an answer to be taken
_AT_ONCE = 32


class CounterServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves a counter at a path. `accounts`: the user numbers that may ask; this process's own always may."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self, path: Path, counter: Counter, accounts: frozenset[int] = frozenset()) -> None:
        self.counter, self._accounts = counter, accounts | {os.getuid()}
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        with _umask(0o177):
            super().__init__(str(path), _Handler)
        if accounts:
            if not hasattr(socket, "SO_PEERCRED"):
                self.server_close()
                raise WrongUsage(
                    "this system does not say which account asks at a socket.",
                    where=str(path),
                    remedy="Run both parts on one account, or on Linux.",
                )
            path.chmod(0o666)  # whoever connects says by the system which account it is

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Whether the account that asks is one of ours."""
        del client_address
        if not hasattr(socket, "SO_PEERCRED"):
            return True  # nobody else can open the socket
        _, account, _ = struct.unpack("3i", request.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return account in self._accounts

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """At most so many at once: the others wait their turn."""
        with self._free:
            super().process_request_thread(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked went away, or asked nothing that can be read: nothing to tell."""


class _Handler(socketserver.StreamRequestHandler):
    timeout = _SECONDS

    def handle(self) -> None:
        server = self.server
        assert isinstance(server, CounterServer)  # noqa: S101  for the type checker
        question = read_question(self.rfile)
        if question is not None:
            write_answer(self.wfile, server.counter.answer(question))


def open_counter(path: Path, counter: Counter, accounts: frozenset[int] = frozenset()) -> CounterServer:
    """The server at a path where nothing is, or a socket that nobody listens at any more."""
    try:
        if path.is_socket():
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(path)) == 0:
                    raise WrongUsage(
                        "another counter answers there.", where=str(path), remedy="End it first, or name another socket."
                    )
            path.unlink()
        return CounterServer(path, counter, accounts)
    except OSError as error:
        raise ReleasePipelineError(
            f"the socket cannot be made: {error.strerror or 'its path is too long'}.",
            where=str(path),
            remedy="Name another: --socket.",
        ) from None


def read_question(stream: IO[bytes] | BufferedIOBase) -> Question | None:
    """What was asked; None where it is no question."""
    try:
        said = json.loads(stream.readline(LONGEST_LINE))
        size = said["size"]
        if not 0 <= size <= LONGEST_BODY:
            return None
        body = stream.read(size)
        proxy = tuple((str(name), str(value)) for name, value in said["proxy"])
        arguments = {str(name): str(value) for name, value in said["arguments"].items()}
        return Question(str(said["call"]), arguments, body, str(said["session"]), str(said["place"]), proxy)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def write_answer(stream: IO[bytes] | BufferedIOBase, answer: Answer) -> None:
    """The answer, a file piece by piece."""
    head: dict[str, Any] = {"status": answer.status}
    file = answer.file
    if file is None:
        body = json.dumps(answer.document, ensure_ascii=False).encode()
        stream.write(_write_line({**head, "size": len(body)}) + body)
        return
    head |= {"media": file.media, "name": file.name, "facts": file.facts}
    if file.path is None:
        stream.write(_write_line({**head, "size": len(file.content)}) + file.content)
        return
    try:
        with file.path.open("rb") as content:
            stream.write(_write_line({**head, "size": os.fstat(content.fileno()).st_size}))
            shutil.copyfileobj(content, stream)
    finally:
        if file.temporary:
            shutil.rmtree(file.path.parent, ignore_errors=True)


def _write_line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
