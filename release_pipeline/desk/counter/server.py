"""The counter's socket: a question a connection, answered by a thread. Only the accounts that it is for are heard.

A question is a line of JSON and a body as long as the line says; so is an answer. No port is open, and no other machine can ask.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import socketserver
import struct
import threading
import time
from collections import Counter as Tally
from collections.abc import Generator, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

from release_pipeline.desk.counter.service import Answer, Counter, Question
from release_pipeline.desk.limits import LONGEST_BODY, LONGEST_LINE
from release_pipeline.door.listening import refuse_socket, remove_dead_socket
from release_pipeline.errors import WrongUsage

SECONDS = 30.0  # to send a whole question, and for each piece of an answer to be taken
_AT_ONCE = 32  # questions that are answered; what is slow to be sent or taken waits beside them
MOST_OF_ONE = 128  # connections of one account: whoever has more keeps nobody else from asking


class CounterServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Serves a counter at a path. `accounts`: the user numbers that may ask; this process's own always may."""

    daemon_threads, request_queue_size = True, 128

    def __init__(self, path: Path, counter: Counter, accounts: frozenset[int] = frozenset(), *, seconds: float = SECONDS) -> None:
        self._counter, self._accounts, self.seconds = counter, accounts | {os.getuid()}, seconds
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._open: Tally[int] = Tally()
        self._lock = threading.Lock()
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
        return _find_account(request) in self._accounts

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for it, unless its account has as many as it may: then it is closed unheard."""
        account = _find_account(request)
        with self._lock:
            if self._open[account] >= MOST_OF_ONE:
                self.shutdown_request(request)
                return
            self._open[account] += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """It counts until it is closed."""
        account = _find_account(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open[account] -= 1

    def answer(self, question: Question) -> Answer:
        """The counter's, at most so many at once: the others wait their turn."""
        with self._free:
            return self._counter.answer(question)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked went away, or asked nothing that can be read: nothing to tell."""


def _find_account(connection: socket.socket) -> int:
    """Whose process is at the other end, as the system says; where it does not, nobody else can open the socket."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getuid()
    said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", said)[1])


class _InTime(io.RawIOBase):
    """Reads from a connection until a moment, however slowly it is sent."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._ends = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._ends - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, CounterServer)  # noqa: S101  for the type checker
        question = read_question(io.BufferedReader(_InTime(self.connection, server.seconds)))
        if question is not None:
            answer = server.answer(question)
            self.connection.settimeout(server.seconds)
            write_answer(self.wfile, answer)


def open_counter(path: Path, counter: Counter, accounts: frozenset[int] = frozenset()) -> CounterServer:
    """The server at a path where nothing is, or a socket that nobody listens at any more."""
    try:
        remove_dead_socket(path)
        return CounterServer(path, counter, accounts)
    except OSError as error:
        raise refuse_socket(path, error.strerror, option="--socket") from None


def read_question(stream: IO[bytes] | BufferedIOBase) -> Question | None:
    """What was asked; None where it is no question."""
    try:
        said = json.loads(stream.readline(LONGEST_LINE))
        size = said["size"]
        if not 0 <= size <= LONGEST_BODY:
            return None
        body = stream.read(size)
        if len(body) != size:
            return None  # whoever asked went away in the middle: half of it is another question
        proxy = tuple((str(name), str(value)) for name, value in said["proxy"])
        arguments = {str(name): str(value) for name, value in said["arguments"].items()}
        return Question(str(said["call"]), arguments, body, str(said["session"]), str(said["place"]), proxy)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write_answer(stream: IO[bytes] | BufferedIOBase, answer: Answer) -> None:
    """The answer, a file piece by piece."""
    head: dict[str, Any] = {"status": answer.status}
    file = answer.file
    if file is None:
        body = json.dumps(answer.document, ensure_ascii=False).encode("utf-8", "replace")
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
        file.discard()


def _write_line(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said).encode() + b"\n"


@contextlib.contextmanager
def _umask(mask: int) -> Generator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
