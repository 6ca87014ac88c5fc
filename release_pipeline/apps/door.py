"""The checks of every web page of ours before it answers: by which name and from which page it is asked, and the person whom a
proxy names.

`apps.dagster.door` has the rest for Dagster's UI, `apps.desk.web` for the desk.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import hmac
import os
import re
import socket
from collections.abc import AsyncIterable, Awaitable, Callable, Generator, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.policy.loading.load import read_text
from release_pipeline.policy.loading.messages import raise_problems
from release_pipeline.policy.values.text import read_yaml


class Refused(Exception):
    """A refused request, with the HTTP status and a message that repeats nothing of the request."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


def hash_secret(secret: str) -> str:
    """Return the hash of a secret that was drawn at random; a secret that can be guessed would need a slower one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# The names that the door answers to, and the pages that may change something: against DNS rebinding and forged requests. A
# browser sends the name that it connects to in Host, and the page that asks in Origin; no page can change either. Cookies prove
# nothing: the browser adds them for any page.


Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The names of the door, each NAME or NAME:PORT, and the origins of its own pages."""

    hosts: frozenset[str]
    origins: frozenset[str]

    def check_host(self, headers: Headers) -> None:
        """Refuse a request for a name that is not the door's."""
        if (read_one(headers, b"host") or "").lower() not in self.hosts:
            raise Refused(403, "the door has another name. Use the address that it printed, or start it with --allow-host.")

    def check_change(self, headers: Headers) -> None:
        """Refuse a request that could change something unless a page of the door's own sends it."""
        is_ours = (read_one(headers, b"origin") or "").lower() in self.origins
        if not is_ours or read_one(headers, b"sec-fetch-site") not in (None, "same-origin"):
            raise Refused(403, "this was asked by a page that is not the door's own, or by no page at all.")

    def check_look(self, headers: Headers) -> None:
        """Refuse requests for a picture, a script or a frame of another page; links may lead here."""
        if read_one(headers, b"sec-fetch-site") in (None, "none", "same-origin"):
            return
        if (read_one(headers, b"sec-fetch-mode"), read_one(headers, b"sec-fetch-dest")) != ("navigate", "document"):
            raise Refused(403, "another page asks for this, and not the person who looks at it.")


def local_addresses(port: int, also: Iterable[str] = ()) -> Addresses:
    """Return the addresses of a door on this machine, with other names under which it is reached."""
    hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}", *(name.lower() for name in also)})
    return Addresses(hosts, frozenset(f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts))


def proxy_addresses(hosts: Iterable[str]) -> Addresses:
    """Return the addresses of a door behind a proxy with these names: its pages come by TLS."""
    names = frozenset(host.lower() for host in hosts)
    return Addresses(names, frozenset(f"https://{name}" for name in names))


def read_one(headers: Headers, name: bytes) -> str | None:
    """Return the value of a header, or None without one; raises `Refused` where it occurs twice, since two readers could take
    different ones."""
    values = [value for key, value in headers if key.lower() == name]
    if len(values) > 1:
        raise Refused(400, "a header stands twice that may stand once.")
    return values[0].decode("latin-1").strip() if values else None


# The identity of a person, where a reverse proxy has asked an OIDC provider: its headers count with the secret that it shares
# with us. Its address proves nothing: any account can connect from 127.0.0.1.


EXAMPLE = "docs/operating.md has an example."
_LEAST_SECRET = 32


@dataclass(frozen=True, slots=True)
class ProxyHeaders:
    """The headers of a proxy, and the names under which it is reached."""

    secret: str
    secret_header: str
    person_header: str
    hosts: tuple[str, ...]

    @property
    def addresses(self) -> Addresses:
        """Return the addresses of pages behind the proxy, which come by TLS."""
        return proxy_addresses(self.hosts)

    def find_person(self, headers: Headers) -> str:
        """Return the name of the person who asks, by the proxy; raises `Refused` if they did not come through it."""
        secret = read_one(headers, self.secret_header.encode()) or ""
        if not hmac.compare_digest(secret.encode("latin-1"), self.secret.encode()):
            raise Refused(403, "this did not come through the proxy that the door trusts.")
        person = read_one(headers, self.person_header.encode())
        if not person:
            raise Refused(403, "the proxy does not say who asks.")
        return person


def read_proxy_file(file: Path, *, headers: Sequence[str], lists: Sequence[str]) -> dict[str, Any]:
    """Return the settings of a proxy in a file: `secret` from its `secret_file`, names of `headers` in lower case, and `lists` of
    texts. Paths in it start at its folder."""
    document, where = read_yaml(read_text(file)), str(file)
    if document.problems:
        raise_problems(document, document.problems, where, what="file")
    value: Any = document.value
    settings = cast("dict[str, Any]", value) if isinstance(value, dict) else dict[str, Any]()
    expected = ("secret_file", *headers, *lists)
    if set(settings) != set(expected):
        raise WrongUsage(f"a trusted proxy has exactly these: {', '.join(expected)}.", where=where, remedy=EXAMPLE)
    for name in lists:
        texts = cast("list[Any]", settings[name]) if isinstance(settings[name], list) else [None]
        if not all(isinstance(text, str) and text and "," not in text for text in texts):
            raise WrongUsage(f"'{name}' is a list of texts without commas.", where=where, remedy=EXAMPLE)
    if not all(isinstance(settings[name], str) and re.fullmatch(r"[A-Za-z0-9-]+", settings[name]) for name in headers):
        raise WrongUsage("a header has letters, digits and hyphens.", where=where, remedy=EXAMPLE)
    names = {name: settings[name].lower() for name in headers}
    if len(set(names.values())) != len(names) or not settings["hosts"]:
        raise WrongUsage("the headers must differ, and 'hosts' needs a name.", where=where, remedy=EXAMPLE)
    secret = _read_secret(file.parent / str(settings["secret_file"]))
    return {"secret": secret, **names, **{name: settings[name] for name in lists}}


def _read_secret(file: Path) -> str:
    """Return the secret of the proxy; refused if another account can read its file."""
    if not file.is_file():
        raise WrongUsage("the file with the proxy's secret is missing.", where=str(file), remedy=EXAMPLE)
    if file.stat().st_mode & 0o007:
        raise WrongUsage("every account can read the proxy's secret.", where=str(file), remedy="chmod o= FILE")
    secret = read_text(file).strip()
    if len(secret) < _LEAST_SECRET or not secret.isascii() or not secret.isprintable():
        raise WrongUsage(
            f"the proxy's secret is one line of {_LEAST_SECRET} or more plain characters.",
            where=str(file),
            remedy="openssl rand -hex 32",
        )
    return secret


# Where a web page of ours listens: at a port of this machine, or at a Unix socket in a folder of its account. Any account can
# bind a port above 1023 first, and then gets everything that browsers and proxies send there. No other account can make a socket
# in the server's folder.


_QUEUE = 2048  # connections that the system holds until we accept them
_SOCKET_MODE = 0o660  # the owner, and the group that the folder gives it: the proxy's


@contextlib.contextmanager
def opened_listener(port: int, uds: Path | None = None) -> Generator[socket.socket]:
    """Yield a socket that listens at the path `uds`, or else at this port; raises `WrongUsage` where it cannot."""
    with _opened_port(port) if uds is None else opened_socket(uds) as listener:
        yield listener


@contextlib.contextmanager
def _opened_port(port: int) -> Generator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # Connections of a server that ended must not keep the next one from its port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen(_QUEUE)
        except OSError as error:
            raise _refuse_port(port, in_use=error.errno == errno.EADDRINUSE, why=error.strerror) from None
        yield listener


def _refuse_port(port: int, *, in_use: bool, why: str | None) -> WrongUsage:
    if not in_use:
        return WrongUsage(f"port {port} cannot be listened at: {why}.", where="--port", remedy="Name another port, above 1023.")
    remedy = f"End it, or name another port, as in --port {port + 1 if port < 65535 else port - 1}."
    return WrongUsage(f"another desk or program has port {port}.", where="--port", remedy=remedy)


@contextlib.contextmanager
def opened_socket(path: Path, *, mode: int = _SOCKET_MODE, option: str = "--uds") -> Generator[socket.socket]:
    """Yield a socket that listens at a path, for the owner and the group of its folder, or with the mode `mode`. The path is free
    again afterwards. Raises `WrongUsage` where others can write to the folder, or a process listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            _check_folder(path.parent)
            _remove_dead_socket(path)
            listener.bind(str(path))
        except OSError as error:
            raise ReleasePipelineError(
                f"the socket cannot be made: {error.strerror or 'its path is too long'}.",
                where=str(path),
                remedy=f"Name another: {option}.",
            ) from None
        try:
            path.chmod(mode)  # before `listen`, so that no client can connect earlier
            listener.listen(_QUEUE)
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _check_folder(folder: Path) -> None:
    """Refuse a folder in which another account can replace our socket."""
    rights = folder.stat()
    if rights.st_uid not in (os.getuid(), 0) or rights.st_mode & 0o022:
        raise WrongUsage(
            "other accounts can write to this folder, and so put their own socket in the place of this one.",
            where=str(folder),
            remedy=f"Name a folder of this account: chmod go-w {folder}",
        )


def _remove_dead_socket(path: Path) -> None:
    """Remove the socket of a process that ended; raises `WrongUsage` where a process still answers at it."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(path)) == 0:
                raise WrongUsage(
                    "another process answers there.", where=str(path), remedy="End it first, or name another socket."
                )
        path.unlink()


# Limits of our web servers. uvicorn sets no deadline for a request, and its `limit_concurrency` refuses everyone alike: a
# thousand connections with half a head each would take all files that the process may open. This protocol ends slow requests.
# Where there are too many connections, it ends the one that has waited longest for the rest of a request.


HEAD_SECONDS = 10.0  # for the head of a request: browsers and proxies send it at once
BODY_SECONDS = 60.0  # for the whole body: two megabytes, at 35 kB a second
TAKING_SECONDS = 60.0  # in which the other end takes at least something of an answer
MOST_CONNECTIONS = 400  # each may need a second file, to the backend: both fit into 1,024, the usual limit
SECURITY_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # 'no-referrer' would take the Origin from our own forms too
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_BEGUN = count(1)  # numbers stages as they begin: clocks of event loops may give many connections one time
_CLOSING_SECONDS = 5  # a page that stays open must not keep the server from ending


def configure_server(application: Any, *, http: Any = None, **more: Any) -> uvicorn.Config:
    """Return the settings of a server whose connections end when they are too slow, and make room for others."""
    return uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSING_SECONDS,
        http=http or PatientProtocol,
        **more,
    )


class Server(uvicorn.Server):
    """A server that calls `ready` once it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: Any = None) -> None:
        """See `uvicorn.Server`."""
        await super().startup(sockets)
        if self.started:
            self._ready()


async def read_body(parts: AsyncIterable[bytes], longest: int, find_longest: Callable[[], Awaitable[int]] | None = None) -> bytes:
    """Return the body of a request; raises `Refused` where it is longer than `longest` bytes, or than the result of
    `find_longest`, which is only called for a longer body."""
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > longest and find_longest is not None:
            longest, find_longest = await find_longest(), None
        if len(body) > longest:
            raise Refused(413, "this is longer than anything that is taken here.")
    return bytes(body)


def with_headers(
    send: Send,
    *,
    always: Mapping[bytes, bytes] = MappingProxyType({}),
    defaults: Mapping[bytes, bytes],
    more: Iterable[tuple[bytes, bytes]] = (),
) -> Send:
    """Return a `send` that adds headers to every answer: `always` replaces the answer's, `defaults` counts where it has none of
    that name, and `more` is added to its headers."""

    async def send_with(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [pair for pair in message.get("headers", ()) if pair[0].lower() not in always]
            names = {name.lower() for name, _ in headers}
            headers += [pair for pair in defaults.items() if pair[0] not in names]
            message = {**message, "headers": [*headers, *always.items(), *more]}
        await send(message)

    return send_with


class PatientProtocol(H11Protocol):
    """A connection that ends when a stage of a request takes too long."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        self._stage: tuple[str, object] | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._begun = 0  # the number of the stage
        self._ended = False

    @property
    def waits(self) -> bool:
        """Return whether the other end has a request to begin or to finish."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete or cycle.more_body)

    def connection_made(self, transport: Any) -> None:
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._set_deadline()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Restart the deadline after an answer was sent."""
        super().on_response_complete()
        self._set_deadline()

    def pause_writing(self) -> None:
        """Note that the other end takes nothing more for now."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(TAKING_SECONDS, self.end)

    def resume_writing(self) -> None:
        """Note that the other end takes data again."""
        super().resume_writing()
        _cancel(self._stalled)
        self._stalled = None

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Give the connection to another protocol, which handles it from here on."""
        self._leave()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._leave()
        super().connection_lost(exc)

    def end(self) -> None:
        """Close the connection without waiting until the other end has taken everything."""
        self._leave()
        self.transport.abort()

    def _leave(self) -> None:
        self._ended = True
        for timer in (self._timer, self._stalled):
            _cancel(timer)

    def _set_deadline(self) -> None:
        """A timer for each stage of a request, from its beginning: bytes that trickle in do not put it off."""
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            stage, seconds = ("head", cycle), HEAD_SECONDS
        else:
            stage, seconds = ("body" if cycle.more_body else "answer", cycle), BODY_SECONDS
        if self._ended or stage == self._stage:
            return
        _cancel(self._timer)
        self._stage, self._begun = stage, next(_BEGUN)
        self._timer = None if stage[0] == "answer" else self.loop.call_later(seconds, self.end)

    def _make_room(self) -> None:
        """End the connection that has waited longest without a whole request; this one, where all others are being answered."""
        going_on = [each for each in self.connections if isinstance(each, PatientProtocol) and not each._ended]
        if len(going_on) > MOST_CONNECTIONS:
            min((each for each in going_on if each.waits), key=lambda each: each._begun).end()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
