"""The desk as an ASGI application: checks the name and the page of each request and who asks, and chooses the page that
answers.

Browsers share cookies among all ports of a machine, so a server of another account at 127.0.0.1 would get ours; only the path of
a cookie keeps it from them. So everything of a session is below a secret path. Behind a proxy there is no such path: the proxy
names the person, and the backend checks that it was the proxy.
"""

from __future__ import annotations

import json
import logging
import mimetypes
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from release_pipeline import pages as report
from release_pipeline.apps.desk.web.frame import (
    LONGEST_LOGIN,
    LONGEST_UNKNOWN,
    NOBODY,
    Client,
    Credentials,
    Visit,
    Way,
    Wrong,
    check_form,
    give,
    pass_on,
    read_form,
    show,
    show_page,
)
from release_pipeline.apps.door import SECURITY_HEADERS, Addresses, Headers, Refused, read_one, with_headers

_WISH = ("what", "subject", "verdict", "why")
_VOTES = ("approve", "return", "reject")
_NO_WISH = {"verdict": "", "why": ""}


async def _show_release(visit: Visit) -> Response:
    release = await visit.ask("release", {"release": visit.path("release")})
    return await visit.render("release.html", release, wish=_NO_WISH, fault=None)


async def _remark(visit: Visit) -> Response:
    remark = visit.read("what", "subject", "passage", "text")
    await visit.ask("remark", remark)
    return visit.go(_page_of(remark), "Your remark is kept, for you alone until you sign it.", to="remarks")


async def _drop(visit: Visit) -> Response:
    remark = visit.read("what", "subject", "number")
    await visit.ask("drop-remark", remark)
    return visit.go(_page_of(remark), "The remark is dropped.", to="remarks")


async def _sign(visit: Visit) -> Response:
    """Return the page after a decision: what the person is to sign on their machine, and how."""
    wish = visit.read(*_WISH)
    try:
        document = await visit.ask("sign", wish)
    except Wrong as wrong:
        is_vote = wish["what"] == "candidate" and wish["verdict"] in _VOTES  # of a form that can be shown again as it was
        if wrong.status in (401, 403) or wrong.status >= 500 or not is_vote:
            raise
        release = await visit.ask("release", {"release": wish["subject"]})
        return await visit.render("release.html", release, status=wrong.status, wish=wish, fault=wrong.refusal)
    return await visit.render("sign.html", document, wish=wish, page=_page_of(wish))


async def _fetch_bundle(visit: Visit) -> Response:
    return pass_on(await visit.fetch("bundle", visit.read(*_WISH)))


async def _take_statements(visit: Visit) -> Response:
    """Import files as `sign` wrote them: each statement with its signature."""
    subject = visit.read("what", "subject", "verdict")
    done = await visit.ask("statements", subject, json.dumps({"statements": _pair(visit.files)}))
    return visit.go(_page_of(subject), str(done["words"]))


def _pair(files: Any) -> list[dict[str, Any]]:
    """Return statements with their signatures, from files that were chosen together."""
    named = {name.rpartition("/")[2]: content for name, content in files.items() if content}
    statements: list[dict[str, Any]] = []
    for name, content in sorted(named.items()):
        if name.endswith((".sig", ".document.json")):  # of remarks the desk has the document
            continue
        signature = named.get(f"{name}.sig")
        if signature is None:
            raise Refused(400, f"{name[:100]}.sig is missing: choose each statement together with its signature.")
        statements.append({"statement": _read_statement(name, content), "sshsig": signature.decode("ascii", "replace")})
    if not statements:
        raise Refused(400, "no statement was chosen: choose what `sign` wrote, the .json and the .json.sig.")
    return statements


def _read_statement(name: str, content: bytes) -> dict[str, Any]:
    """Return the statement in a chosen file, which must at least have a kind."""
    statement: Any = None
    with suppress(ValueError, RecursionError):
        statement = json.loads(content)
    if not isinstance(statement, dict) or "kind" not in statement:
        raise Refused(
            400,
            f"{name[:100]} is no statement as `sign` writes it: it does not say what was decided. Choose the .json that `sign`"
            " wrote next to its .json.sig.",
        )
    return cast(dict[str, Any], statement)


def _page_of(subject: dict[str, str]) -> str:
    """Return the page that a form came from."""
    name = subject["subject"]
    pages = {"candidate": f"/releases/{name}", "policy": f"/approvals/policies/{name}"}
    return pages.get(subject["what"], "/approvals/populations")


RELEASE_WAYS = (
    give("/releases/{release:path}/report", "report", shown=True),
    Way("/releases/{release:path}", _show_release),
    Way("/remarks", _remark, sends=True),
    Way("/remarks/drop", _drop, sends=True),
    Way("/sign", _sign, sends=True),
    Way("/bundle", _fetch_bundle, sends=True),
    Way("/statements", _take_statements, sends=True),
)


COOKIE = "release_pipeline_desk"
LOGIN, STATIC, ALIVE = "/login", "/static/", "/alive"
_PAGE = re.compile(  # the possible targets of an alert or a bookmark: pages for people, and no other address
    r"/(?:releases|approvals|chain|caps|audit|help)(?:/(?!\.\.?(?:/|$))[A-Za-z0-9._-]{1,64}){0,4}"
)
_BASE = "release_pipeline.base"
_SECONDS = 8 * 3600
_FILES = (*(Path(__file__).parent / "static").iterdir(), Path(report.__file__).parent / "templates" / "tokens.css")
_LOG = logging.getLogger(__name__)
_HEADERS = {  # of every answer that sets no other
    **SECURITY_HEADERS,
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


async def _leave(visit: Visit) -> Response:
    await visit.ask("leave")
    return RedirectResponse("/login" if visit.base else "/", 303)


WAYS = (
    show("/", "home.html", "home"),
    show("/help", "help.html", "help"),
    show("/releases", "releases.html", "releases"),
    Way("/leave", _leave, sends=True),
    *RELEASE_WAYS,
    show("/approvals", "approvals.html", "approvals"),
    show("/approvals/populations", "approval.html", "populations-approval"),
    show("/approvals/policies/{policy}", "approval.html", "policy-approval"),
    show("/caps", "caps.html", "caps"),
    show("/audit", "audit.html", "audit"),
    give("/chain/{release:path}/dossier", "dossier", sends=True),
    show("/chain/{release:path}", "chain.html", "chain"),
)


@dataclass(frozen=True, slots=True)
class ProxyNames:
    """The headers by which a proxy names people: the web process passes them on, and the backend checks them."""

    secret_header: str
    person_header: str


class Desk:
    """Answers browsers. Without a proxy, people log in with their tokens."""

    def __init__(self, client: Client, addresses: Addresses, *, proxy: ProxyNames | None = None) -> None:
        self._client, self._addresses, self._proxy = client, addresses, proxy
        self._static = {file.name: file.read_bytes() for file in _FILES}
        self._routes = [(Route(way.path, way.answer, methods=["POST" if way.sends else "GET"]), way) for way in WAYS]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except Refused as refused:
            answer = _show_refusal(request, refused.status, refused.words)
        except Wrong as wrong:
            answer = _show_refusal(request, wrong.status, **wrong.refusal)
        except ClientDisconnect:  # or the server ended a request that took too long: no client is left to answer
            return
        except Exception:
            _LOG.exception("a page failed")
            answer = _show_refusal(request, 500, "the page could not be made. The desk's log says why.")
        await answer(scope, receive, with_headers(send, defaults=_HEADERS))

    async def _answer(self, request: Request) -> Response:
        headers, method, path = request.scope["headers"], request.method, request.scope["path"]
        self._addresses.check_host(headers)
        if method not in ("GET", "HEAD", "POST"):
            raise Refused(405, "the desk takes GET, HEAD and POST.")
        if path == ALIVE:
            return JSONResponse({})
        if method == "POST":
            self._addresses.check_change(headers)
        else:
            self._addresses.check_look(headers)
        if path.startswith(STATIC):
            return self._give_file(path.removeprefix(STATIC))
        if self._proxy is None and path == LOGIN:
            return await self._log_in(request) if method == "POST" else _show_login(request)
        visit = await self._visit(request, path)
        if visit is None:
            if method == "POST":
                raise Refused(401, "you are not logged in, or no longer: load the page again.")
            return _ask_to_log_in(path)
        request.scope[_BASE] = visit.base
        return await self._show(visit)

    def _give_file(self, name: str) -> Response:
        content = self._static.get(name)
        if content is None:
            raise Refused(404, "there is nothing of this name.")
        return Response(content, media_type=mimetypes.guess_type(name)[0], headers={"Cache-Control": "max-age=3600"})

    async def _log_in(self, request: Request) -> Response:
        form, _ = await read_form(request, LONGEST_LOGIN)
        token = form.get("token", "").strip().rpartition("#")[2]  # people may paste the whole link
        entered = await self._client.ask("enter", NOBODY, {"token": token})
        if entered.status != 200:
            given = {"message": str(entered.document["what"]), "asks": False, "page": form.get("page", "")}
            return show_page("login.html", given, entered.status)
        base, page = f"/{entered.document['path']}", form.get("page", "")
        answer = RedirectResponse(base + (page if _PAGE.fullmatch(page) else "/"), 303)
        secure = request.headers.get("origin", "").startswith("https:")
        secret = entered.document["session"]
        answer.set_cookie(COOKIE, secret, max_age=_SECONDS, path=base, httponly=True, samesite="lax", secure=secure)
        return answer

    async def _visit(self, request: Request, path: str) -> Visit | None:
        """Return the visit of the person who asks, from the browser's credentials; the backend checks them with each call."""
        if self._proxy is not None:
            names = (self._proxy.secret_header, self._proxy.person_header)
            values = [(name, read_one(request.scope["headers"], name.encode())) for name in names]
            return Visit(request, self._client, Credentials(proxy=tuple((name, value) for name, value in values if value)), "")
        base = path.split("/")[1]
        secret = read_cookie(request.scope["headers"], COOKIE)
        if not base or not secret or not path.startswith(f"/{base}/"):
            return None
        return Visit(request, self._client, Credentials(secret, base), f"/{base}")

    async def _show(self, visit: Visit) -> Response:
        request = visit.request
        inside = request.scope["path"].removeprefix(visit.base)
        for route, way in self._routes:
            match, scope = route.matches({**request.scope, "path": inside, "root_path": ""})
            if match is Match.FULL:
                request.scope["path_params"] = scope["path_params"]
                return await self._answer_way(visit, way)
        raise Refused(404, "there is no such page.")

    async def _answer_way(self, visit: Visit, way: Way) -> Response:
        if way.sends:
            visit.form, visit.files = await read_form(visit.request, LONGEST_UNKNOWN, visit.find_longest)
            check_form(visit)
        try:
            return await way.answer(visit)
        except Wrong as wrong:
            if wrong.status == 401 and self._proxy is None and not way.sends:
                return _ask_to_log_in(visit.request.scope["path"])
            if wrong.status in (401, 403) or wrong.status >= 500:
                return _show_refusal(visit.request, wrong.status, **wrong.refusal)
            return await visit.render("refused.html", {}, status=wrong.status, refusal=wrong.refusal)


def read_cookie(headers: Headers, name: str) -> str:
    """Return the first cookie of this name, or the empty text. Browsers send that of the longest path first: one that a server at
    another port has set for all paths comes behind ours."""
    pairs = (pair.partition("=") for key, value in headers if key == b"cookie" for pair in value.decode("latin-1").split(";"))
    return next((value.strip() for key, _, value in pairs if key.strip() == name), "")


def _ask_to_log_in(path: str) -> Response:
    """Return a redirection to the login, which leads to the requested page, without the path of an ended session."""
    page = next((each for each in (path, "/" + path.lstrip("/").partition("/")[2]) if _PAGE.fullmatch(each)), "")
    return RedirectResponse(f"{LOGIN}?{urlencode({'page': page})}" if page else LOGIN, 303)


def _show_login(request: Request) -> Response:
    """Return the login page. A link logs people in at once, unless another page led them here: it could have chosen the link's
    owner."""
    asks = read_one(request.scope["headers"], b"sec-fetch-site") not in (None, "none", "same-origin")
    page = request.query_params.get("page", "")
    return show_page("login.html", {"message": "", "asks": asks, "page": page if _PAGE.fullmatch(page) else ""})


def _show_refusal(
    request: Request, status: int, what: str, where: str = "", remedy: str = "", details: Iterable[str] = ()
) -> Response:
    """Return a page that says why nothing was done, also for people who are not logged in."""
    base = request.scope.get(_BASE, "")
    refusal = {"what": what, "where": where, "remedy": remedy, "details": list(details), "base": base}
    return show_page("wrong.html", refusal, status)
