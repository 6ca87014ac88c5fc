"""The door itself: an ASGI application around Dagster's, which gets nothing that was not judged here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from release_pipeline.dagster_app.door.entrance import LOGIN, LOGOUT, LONGEST_FORM, Entrance
from release_pipeline.dagster_app.door.forwarded import TrustedProxy
from release_pipeline.dagster_app.door.judge import LONGEST, judge_request
from release_pipeline.dagster_app.door.machines import PATHS, Machines
from release_pipeline.dagster_app.door.patience import Patience
from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.dagster_app.door.sessions import Visitor
from release_pipeline.dagster_app.door.sockets import Sockets
from release_pipeline.door.addresses import Addresses, Headers, read_one
from release_pipeline.door.refusal import Refused

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

ROLE = "release_pipeline.role"  # in the scope, for Dagster's own permissions
ALIVE = "/server_info"  # answered to everybody who knows the name of the door, with nothing
GRAPHQL = "/graphql"
# What Dagster serves beside its pages: files by their path, runs whole, and a playground that loads foreign scripts.
_CLOSED = ("/graphql", "/graphiql", "/logs", "/notebook", "/dagit", "/dagit_info", "/download_debug", "/server_info")
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",  # 'no-referrer' would take the Origin from our own forms too
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
_NO_FRAMES = (b"content-security-policy", b"frame-ancestors 'none'")  # beside a policy of the page: both hold
_KEPT_OUT = (b"cookie", b"authorization", b"forwarded")


class Door:
    """Lets requests through to Dagster: whose, from where, and what they may ask.

    `places`: Dagster's application below each prefix. `way`: by the token that was printed, or by the headers of a proxy. `most`:
    what anybody may do here, whatever their role. `machines`: who answers those that have no session.
    """

    def __init__(
        self,
        places: Mapping[str, Application],
        *,
        way: Entrance | TrustedProxy,
        addresses: Addresses,
        most: Role,
        machines: Machines,
    ) -> None:
        self._places, self._way, self._addresses, self._most = dict(places), way, addresses, most
        self._machines, self._patience, self._sockets = machines, Patience(), Sockets()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http":
            await self._serve(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        else:
            await next(iter(self._places.values()))(scope, receive, send)

    async def _serve(self, scope: Message, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(scope, receive, send)
        except Refused as refused:
            answer = _tell(refused)
        except ClientDisconnect:  # or the server ended a request that took too long: nobody is there to answer
            return
        if answer is not None:
            await answer(scope, receive, send)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> Response | None:
        """The answer of the door's own, or none where Dagster has answered."""
        headers, method, path = scope["headers"], scope["method"], scope["path"]
        self._addresses.check_host(headers)
        if method == "POST":
            self._addresses.check_change(headers)
        elif method in ("GET", "HEAD"):
            self._addresses.check_look(headers)
        else:
            raise Refused(405, "the door takes GET, HEAD and POST.")
        if path == ALIVE:
            return JSONResponse({})
        if path in PATHS:
            if method == "POST":
                raise Refused(405, "this is asked by GET.")
            return await self._machines.answer(path, headers)
        prefix = self._find_prefix(path)
        own = await self._answer_entrance(Request(scope, receive), method, path, prefix)
        if own is not None:
            return own
        visitor = self._visitor(headers)
        if visitor is None:
            if method == "POST":
                raise Refused(401, "you are not logged in, or no longer: load the page again.")
            return RedirectResponse(LOGIN, 303)
        await self._pass(visitor, prefix, scope, receive, send)
        return None

    async def _answer_entrance(self, request: Request, method: str, path: str, prefix: str) -> Response | None:
        way = self._way
        if not isinstance(way, Entrance):
            return None
        if path == LOGIN:
            return way.log_in(await _read_body(request, LONGEST_FORM)) if method == "POST" else way.show_login()
        if prefix and path == prefix + LOGOUT and way.find(request.scope["headers"]) is not None:
            return way.log_out(request, prefix) if method == "POST" else way.show_logout()
        if not prefix:
            if method == "POST":
                raise Refused(404, "there is nothing to post to here.")
            return RedirectResponse(LOGIN, 303)
        return None

    def _find_prefix(self, path: str) -> str:
        """Below which prefix a path is; none of ours is empty, and the only one of a proxy's is."""
        return next((prefix for prefix in self._places if path.startswith(f"{prefix}/")), "")

    def _visitor(self, headers: Headers) -> Visitor | None:
        found = self._way.find(headers)
        return None if found is None else Visitor(found.role if self._most is Role.OPERATE else self._most, found.is_here)

    async def _pass(self, visitor: Visitor, prefix: str, scope: Message, receive: Receive, send: Send) -> None:
        """To Dagster, with nothing that tells who it is, and a body that was judged."""
        inside, dagster = scope["path"].removeprefix(prefix), self._places[prefix]
        passed = {**scope, "headers": self._clean(scope["headers"]), ROLE: visitor.role}
        if scope["method"] != "POST":
            if inside in _CLOSED or inside.startswith(tuple(f"{path}/" for path in _CLOSED)):
                raise Refused(404, "the door does not open this. GraphQL is asked by POST.")
            await dagster(passed, receive, send)
            return
        if inside != GRAPHQL:
            raise Refused(404, "there is nothing to post to here.")
        if (read_one(scope["headers"], b"content-type") or "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "GraphQL is posted as application/json.")
        body, asks_only = judge_request(await _read_body(Request(scope, receive), LONGEST), visitor.role)
        passed["headers"] = [*(one for one in passed["headers"] if one[0].lower() != b"content-length"), _length(body)]
        replay = _Replay(body, receive)
        if asks_only:
            await self._patience.answer(visitor.role, send, lambda send_in_time: dagster(passed, replay, send_in_time))
        else:
            await dagster(passed, replay, send)

    async def _connect(self, scope: Message, receive: Receive, send: Send) -> None:
        """A websocket, which browsers open to any server for any page: only ours is let in."""
        headers, prefix = scope["headers"], self._find_prefix(scope["path"])
        try:
            self._addresses.check_host(headers)
            self._addresses.check_change(headers)
            visitor = self._visitor(headers) if prefix in self._places and scope["path"] == prefix + GRAPHQL else None
        except Refused:
            visitor = None
        if visitor is None:
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        passed = {**scope, "headers": self._clean(headers), ROLE: visitor.role}
        await self._sockets.carry(visitor, receive, send, lambda *carried: self._places[prefix](passed, *carried))

    def _clean(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Without what logs somebody in, here or anywhere: Dagster needs none of it."""
        way = self._way
        named = (way.secret_header, way.person_header, way.groups_header) if isinstance(way, TrustedProxy) else ()
        out = {*_KEPT_OUT, *(name.encode() for name in named)}
        return [one for one in headers if one[0].lower() not in out]


class _Replay:
    """A body that was read, for who reads it next; after it, what the connection says."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _read_body(request: Request, most: int) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > most:
            raise Refused(413, "this is longer than anything that the door takes.")
    return body


def _length(body: bytes) -> tuple[bytes, bytes]:
    return (b"content-length", str(len(body)).encode())


def _tell(refused: Refused) -> Response:
    """A refusal as GraphQL has errors, which Dagster's pages show."""
    return JSONResponse({"errors": [{"message": f"Refused: {refused.words}"}]}, refused.status)


def _with_headers(send: Send) -> Send:
    """The headers of every answer, in the place of Dagster's own of the same name."""

    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = [one for one in message.get("headers", ()) if one[0].lower() not in _HEADERS]
            if not any(name.lower() == b"cache-control" for name, _ in there):
                there.append((b"cache-control", b"no-store"))
            message = {**message, "headers": [*there, *_HEADERS.items(), _NO_FRAMES]}
        await send(message)

    return send_with
