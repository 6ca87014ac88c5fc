"""The door before Dagster's UI: login by a token or a trusted proxy, and an ASGI application that passes on judged requests.

The token comes after the # of the link, which browsers send to nobody: neither a log nor a Referer has it. The page posts it.
Browsers share cookies among all ports of a machine, so a server of another account at 127.0.0.1 would get ours; only the path of
a cookie keeps it from them. So everything of Dagster's is below a secret path, drawn at each start. Each role has a separate
path, or a viewer could have the cookie of an operator sent to such a server.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs

import jinja2
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from release_pipeline.apps.dagster.judge import LONGEST, Role, judge_message, judge_post, name_of
from release_pipeline.apps.dagster.machines import HEALTH, Machines
from release_pipeline.apps.door import (
    SECURITY_HEADERS,
    Addresses,
    Headers,
    ProxyHeaders,
    Refused,
    hash_secret,
    read_body,
    read_one,
    read_proxy_file,
    with_headers,
)

LOGIN, LOGOUT = "/login", "/logout"
LONGEST_FORM = 4096
LASTS_SECONDS = 8 * 3600
_COOKIE = "release_pipeline_door"
_MOST_COOKIES = 5
_FIRST_PAGE = "/asset-groups"
_PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined
)


class Entrance:
    """Login and logout: a token for each role, and the sessions that were begun with them, in memory only."""

    def __init__(self, roles: Iterable[Role], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = {role: secrets.token_urlsafe(32) for role in roles}
        self.prefixes = {role: f"/{secrets.token_urlsafe(16)}" for role in self.tokens}
        self._clock = clock
        self._sessions: dict[str, tuple[Role, float]] = {}  # by the hash of its secret: its role, and when it ends

    def find(self, headers: Headers) -> Role | None:
        """Return the role of the person who asks, by the cookie; None without a session."""
        sessions = (self._sessions.get(hash_secret(secret)) for secret in _read_cookies(headers))
        return next((role for role, ends in filter(None, sessions) if ends > self._clock()), None)

    def show_login(self, *, message: str = "", status: int = 200) -> Response:
        """Return the page that asks for the token."""
        nonce = secrets.token_urlsafe(16)
        page = HTMLResponse(_PAGES.get_template("login.html").render(message=message, nonce=nonce), status)
        page.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'"
        )
        return page

    def show_logout(self) -> Response:
        """Return the page that asks to confirm the logout."""
        page = HTMLResponse(_PAGES.get_template("logout.html").render())
        page.headers["Content-Security-Policy"] = "default-src 'none'; form-action 'self'; base-uri 'none'"
        return page

    def log_in(self, form: bytes) -> Response:
        """Begin a session if the form has the token; returns the response."""
        fields = parse_qs(form.decode("latin-1"))
        token, now = hash_secret(fields.get("token", [""])[0].strip()), self._clock()
        role = next((role for role, known in self.tokens.items() if hmac.compare_digest(token, hash_secret(known))), None)
        if role is None:
            return self.show_login(
                message="This is not the token of this start. Each start of the UI prints another.", status=403
            )
        secret, prefix = secrets.token_urlsafe(32), self.prefixes[role]
        self._sessions = {digest: session for digest, session in self._sessions.items() if session[1] > now}
        self._sessions[hash_secret(secret)] = (role, now + LASTS_SECONDS)
        answer = RedirectResponse(prefix + _FIRST_PAGE, 303)
        answer.set_cookie(_COOKIE, secret, max_age=LASTS_SECONDS, path=prefix, httponly=True, samesite="strict")
        return answer

    def log_out(self, request: Request, prefix: str) -> Response:
        """End the session and return the response."""
        for secret in _read_cookies(request.scope["headers"]):
            self._sessions.pop(hash_secret(secret), None)
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(_COOKIE, path=prefix, httponly=True, samesite="strict")
        return answer


def _read_cookies(headers: Headers) -> list[str]:
    """Return every cookie of our name: a server at another port may have set one too, which is then one more wrong cookie."""
    pairs = (part.strip().partition("=") for part in (read_one(headers, b"cookie") or "").split(";"))
    return [secret for name, _, secret in pairs if name == _COOKIE][:_MOST_COOKIES]


_HEADERS, _LISTS = ("secret_header", "person_header", "groups_header"), ("hosts", "view", "operate")


@dataclass(frozen=True, slots=True)
class TrustedProxy(ProxyHeaders):
    """A reverse proxy that names people and their groups, as its OIDC provider has them; each role belongs to groups."""

    groups_header: str
    view: frozenset[str]
    operate: frozenset[str]

    def find(self, headers: Headers) -> Role:
        """Return the role of the person who asks; raises `Refused` if they did not come through the proxy, or no group of theirs
        has a role."""
        self.find_person(headers)
        groups = {group.strip() for group in (read_one(headers, self.groups_header.encode()) or "").split(",")} - {""}
        for role, allowed in ((Role.OPERATE, self.operate), (Role.VIEW, self.view)):
            if groups & allowed:
                return role
        raise Refused(403, "none of your groups may look at this site, or operate it.")


def read_proxy(file: Path) -> TrustedProxy:
    """Return the trusted proxy that a file describes."""
    parts = read_proxy_file(file, headers=_HEADERS, lists=_LISTS)
    lists = {"hosts": tuple(parts["hosts"]), "view": frozenset(parts["view"]), "operate": frozenset(parts["operate"])}
    return TrustedProxy(**{**parts, **lists})


ROLE = "release_pipeline.role"  # in the scope, for Dagster's own permissions
ALIVE = "/server_info"  # answered to anyone who knows the name of the door, with nothing
GRAPHQL = "/graphql"
# Other addresses that Dagster serves: files by their path, whole runs, a playground that loads foreign scripts, and mutations by
# GET.
_CLOSED = (GRAPHQL, "/graphiql", "/logs", "/notebook", "/dagit", "/dagit_info", "/download_debug", "/server_info")
_NO_FRAMES = (b"content-security-policy", b"frame-ancestors 'none'")  # both this policy and one of the page hold
_KEPT_OUT = (b"cookie", b"authorization", b"forwarded")
_NOT_ALLOWED = 1008  # the code of RFC 6455 for a websocket that is closed for its content


class Door:
    """Passes requests on to Dagster, judged by who asks, from which page, and for what.

    `applications`: Dagster's application below each prefix. `way`: how people come in, by the token that was printed or by the
    headers of a proxy. `most`: the most that anyone may do here, whatever their role. `machines` answers those without a session.
    """

    def __init__(
        self,
        applications: Mapping[str, ASGIApp],
        *,
        way: Entrance | TrustedProxy,
        addresses: Addresses,
        most: Role,
        machines: Machines,
    ) -> None:
        self._applications, self._way, self._addresses = dict(applications), way, addresses
        self._most, self._machines = most, machines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
            return
        if scope["type"] != "http":
            await next(iter(self._applications.values()))(scope, receive, send)
            return
        send = with_headers(send, always=SECURITY_HEADERS, defaults={b"cache-control": b"no-store"}, more=[_NO_FRAMES])
        try:
            answer = await self._answer(Request(scope, receive), send)
        except Refused as refused:  # as GraphQL has errors, which Dagster's pages show
            errors = [{"message": f"Refused: {refused.words}"}]
            answer = JSONResponse({"errors": errors}, refused.status)
        except ClientDisconnect:  # or the server ended a request that took too long
            return
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, request: Request, send: Send) -> Response | None:
        """Return the door's own answer, or None where Dagster has answered."""
        headers, path, posts = request.scope["headers"], request.scope["path"], request.method == "POST"
        self._addresses.check_host(headers)
        if posts:
            self._addresses.check_change(headers)
        elif request.method in ("GET", "HEAD"):
            self._addresses.check_look(headers)
        else:
            raise Refused(405, "the door takes GET, HEAD and POST.")
        if path == ALIVE:
            return JSONResponse({})
        if path == HEALTH:
            if posts:
                raise Refused(405, "this is asked by GET.")
            return await self._machines.answer()
        way, prefix = self._way, self._find_prefix(path)
        if isinstance(way, Entrance) and path == LOGIN:
            return way.log_in(await read_body(request.stream(), LONGEST_FORM)) if posts else way.show_login()
        role = None if prefix is None else self._find_role(headers)
        if role is None or prefix is None:
            if posts:
                raise Refused(401, "you are not logged in, or no longer: load the page again.")
            return RedirectResponse(LOGIN, 303)
        if isinstance(way, Entrance) and path == prefix + LOGOUT:
            return way.log_out(request, prefix) if posts else way.show_logout()
        await self._pass(role, prefix, request, send)
        return None

    def _find_prefix(self, path: str) -> str | None:
        """Return the prefix that a path is below; behind a proxy the only one is empty."""
        return next((prefix for prefix in self._applications if path.startswith(f"{prefix}/")), None)

    def _find_role(self, headers: Headers) -> Role | None:
        role = self._way.find(headers)
        return self._most if role is not None and self._most is Role.VIEW else role

    async def _pass(self, role: Role, prefix: str, request: Request, send: Send) -> None:
        """Send a request to Dagster, without headers that name a person, and with a body that was judged."""
        inside, headers = request.scope["path"].removeprefix(prefix), self._clean(request.scope["headers"])
        receive = request.receive
        if request.method != "POST":
            if inside in _CLOSED or inside.startswith(tuple(f"{path}/" for path in _CLOSED)):
                raise Refused(404, "the door does not open this. GraphQL is asked by POST.")
        elif inside != GRAPHQL:
            raise Refused(404, "there is nothing to post to here.")
        else:
            kind = (read_one(headers, b"content-type") or "").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise Refused(415, "GraphQL is posted as application/json.")
            body = judge_post(await read_body(request.stream(), LONGEST), role)
            headers = [pair for pair in headers if pair[0].lower() != b"content-length"]
            headers.append((b"content-length", str(len(body)).encode()))
            receive = _replay(body, receive)
        await self._applications[prefix]({**request.scope, "headers": headers, ROLE: role}, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a websocket. Browsers let any page open one to any server, so only our pages are admitted."""
        headers, prefix = scope["headers"], self._find_prefix(scope["path"])
        role = None
        with suppress(Refused):
            self._addresses.check_host(headers)
            self._addresses.check_change(headers)
            if prefix is not None and scope["path"] == prefix + GRAPHQL:
                role = self._find_role(headers)
        if role is None or prefix is None:
            await receive()
            await send({"type": "websocket.close", "code": _NOT_ALLOWED})
            return
        passed = {**scope, "headers": self._clean(headers), ROLE: role}
        judged = JudgedSocket(role, lambda: self._find_role(headers) is role, receive, send)
        await self._applications[prefix](passed, judged.receive, judged.send)

    def _clean(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return the headers without those that log somebody in: Dagster needs none of them."""
        way = self._way
        named = () if isinstance(way, Entrance) else (way.secret_header, way.person_header, way.groups_header)
        out = {*_KEPT_OUT, *(name.encode() for name in named)}
        return [pair for pair in headers if pair[0].lower() not in out]


class JudgedSocket:
    """A websocket whose messages are judged. The first message after the end of its session closes it."""

    def __init__(self, role: Role, is_here: Callable[[], bool], receive: Receive, send: Send) -> None:
        self._role, self._is_here, self._receive, self._send = role, is_here, receive, send
        self._closed = False

    async def receive(self) -> Message:
        """Return the next message that Dagster may have."""
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return message
            text = message.get("text")
            if not self._is_here() or text is None:
                await self._close()
                return {"type": "websocket.disconnect", "code": _NOT_ALLOWED}
            try:
                return {"type": "websocket.receive", "text": judge_message(text, self._role)}
            except Refused as refused:
                payload = {"message": f"Refused: {refused.words}"}
                error = json.dumps({"type": "error", "id": name_of(text), "payload": payload})
                await self._send({"type": "websocket.send", "text": error})

    async def send(self, message: Message) -> None:
        """Send it, while its session lasts."""
        if message["type"] == "websocket.send" and not self._is_here():
            await self._close()
        elif not self._closed:
            await self._send(message)

    async def _close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._send({"type": "websocket.close", "code": _NOT_ALLOWED})


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body again that was read before, and then the rest of the connection."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
