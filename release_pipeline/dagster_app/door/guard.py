"""The door itself: an ASGI application around Dagster's, which gets nothing that was not judged here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from release_pipeline.dagster_app.door import Role
from release_pipeline.dagster_app.door.entrance import LOGIN, LOGOUT, LONGEST_FORM, Entrance
from release_pipeline.dagster_app.door.forwarded import TrustedProxy
from release_pipeline.dagster_app.door.judge import LONGEST, judge_message, judge_post, name_of
from release_pipeline.dagster_app.door.machines import PATHS, Machines
from release_pipeline.door import Refused
from release_pipeline.door.addresses import Addresses, Headers, read_one
from release_pipeline.door.serving import SECURITY_HEADERS, read_body, with_headers

ROLE = "release_pipeline.role"  # in the scope, for Dagster's own permissions
ALIVE = "/server_info"  # answered to everybody who knows the name of the door, with nothing
GRAPHQL = "/graphql"
# What Dagster serves beside its pages: files by their path, runs whole, and a playground that loads
# foreign scripts. Mutations by GET are among it.
_CLOSED = (GRAPHQL, "/graphiql", "/logs", "/notebook", "/dagit", "/dagit_info", "/download_debug", "/server_info")
_NO_FRAMES = (b"content-security-policy", b"frame-ancestors 'none'")  # beside a policy of the page: both hold
_KEPT_OUT = (b"cookie", b"authorization", b"forwarded")
_NOT_ALLOWED = 1008  # the code of RFC 6455 for a websocket that is closed for its content


class Door:
    """Lets requests through to Dagster: whose, from where, and what they may ask.

    `places`: Dagster's application below each prefix. `way`: by the token that was printed, or by
    the headers of a proxy. `most`: what anybody may do here, whatever their role. `machines`
    answers those that have no session.
    """

    def __init__(
        self,
        places: Mapping[str, ASGIApp],
        *,
        way: Entrance | TrustedProxy,
        addresses: Addresses,
        most: Role,
        machines: Machines,
    ) -> None:
        self._places, self._way, self._addresses, self._most = dict(places), way, addresses, most
        self._machines = machines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "websocket":
            await self._connect(scope, receive, send)
            return
        if scope["type"] != "http":
            await next(iter(self._places.values()))(scope, receive, send)
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
        """The door's own answer; None where Dagster has answered."""
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
        if path in PATHS:
            if posts:
                raise Refused(405, "this is asked by GET.")
            return await self._machines.answer(path, headers)
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
        """Below which prefix a path is; the only one of a proxy's is empty."""
        return next((prefix for prefix in self._places if path.startswith(f"{prefix}/")), None)

    def _find_role(self, headers: Headers) -> Role | None:
        role = self._way.find(headers)
        return self._most if role is not None and self._most is Role.VIEW else role

    async def _pass(self, role: Role, prefix: str, request: Request, send: Send) -> None:
        """To Dagster, with nothing that tells who it is, and a body that was judged."""
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
        await self._places[prefix]({**request.scope, "headers": headers, ROLE: role}, receive, send)

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A websocket, which browsers open to any server for any page: only ours is let in."""
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
        carried = Carried(role, lambda: self._find_role(headers) is role, receive, send)
        await self._places[prefix](passed, carried.receive, carried.send)

    def _clean(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Without what logs somebody in, here or anywhere: Dagster needs none of it."""
        way = self._way
        named = () if isinstance(way, Entrance) else (way.secret_header, way.person_header, way.groups_header)
        out = {*_KEPT_OUT, *(name.encode() for name in named)}
        return [pair for pair in headers if pair[0].lower() not in out]


class Carried:
    """One websocket, each message judged. It is closed with the first message after its session's end."""

    def __init__(self, role: Role, is_here: Callable[[], bool], receive: Receive, send: Send) -> None:
        self._role, self._is_here, self._receive, self._send = role, is_here, receive, send
        self._closed = False

    async def receive(self) -> Message:
        """The next message that Dagster may have."""
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
    """A body that was read, for who reads it next; after it, what the connection says."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
