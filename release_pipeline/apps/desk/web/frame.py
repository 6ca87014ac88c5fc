"""The parts of every page of the desk: calls to the backend, the only way to the site, forms, and answers with headers."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote, urlencode

import httpx
import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from release_pipeline import __version__
from release_pipeline.apps.desk.backend.protocol import FILE_HEADER, LONGEST, REQUESTS, CallRequest
from release_pipeline.apps.door import Refused, read_body

_SECONDS = 120  # for long computations there: an audit's page, a package that is verified
AWAY = "the site's backend does not answer. The operator starts it: release-pipeline desk backend."


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials from the browser or a proxy. `path`: that of the session."""

    session: str = ""
    path: str = ""
    proxy: tuple[tuple[str, str], ...] = ()


NOBODY = Credentials()


@dataclass(frozen=True, slots=True)
class BackendAnswer:
    """An answer of the backend: a document, or a file that is still to be read, with its name and facts."""

    status: int
    document: Mapping[str, Any] = field(default_factory=dict[str, Any])
    file: httpx.Response | None = None
    name: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Client:
    """Sends calls to the backend at a socket, each on a new connection."""

    def __init__(self, path: Path, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._http = httpx.AsyncClient(
            transport=transport or httpx.AsyncHTTPTransport(uds=str(path), verify=False, limits=limits),
            timeout=_SECONDS,
            trust_env=False,
        )

    async def ask(
        self, call: str, who: Credentials = NOBODY, arguments: Mapping[str, str] | None = None, body: str = ""
    ) -> BackendAnswer:
        """Return the answer to a call; raises `Refused` where the backend does not answer."""
        content = REQUESTS.dump_json(CallRequest(call, arguments or {}, body, who.session, who.path, who.proxy))
        if len(content) > LONGEST:
            raise Refused(413, "this is longer than anything that the desk takes.")
        try:
            answer = await self._http.send(self._http.build_request("POST", "http://localhost/", content=content), stream=True)
            if (file := answer.headers.get(FILE_HEADER)) is not None:
                return BackendAnswer(answer.status_code, {}, answer, **json.loads(file))
            await answer.aread()
            return BackendAnswer(answer.status_code, answer.json())
        except (httpx.HTTPError, ValueError):
            raise Refused(503, AWAY) from None


LONGEST_FORM, _MOST_PARTS = 1 << 21, 500
LONGEST_UNKNOWN = 1 << 16  # of people who are not logged in: each of many connections may make us keep so much
LONGEST_LOGIN = 1 << 12
_NO_FORM = "this is no form."
_BOUNDARY = re.compile(r"; *boundary=\"?([0-9A-Za-z'()+_,./:=?-]{1,70})\"?$")
_DISPOSITION = re.compile(
    rb'\r\ncontent-disposition: *form-data; *name="([^"\r\n]*)"(; *filename="([^"\r\n]*)")?(?=\r\n)', re.IGNORECASE
)
FORM_TOKEN = "desk"  # the field of every form  # noqa: S105
SAID, SEAL = "said", "seal"
_FORM, _NOTE = "form", "note"  # sealed with the content, so that one is not taken for the other
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; frame-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Wrong(Exception):
    """The backend's refusal: what is wrong, where, and what to do."""

    def __init__(self, answer: BackendAnswer) -> None:
        super().__init__(answer.status)
        self.status = answer.status
        self.refusal: dict[str, Any] = {"what": "it was refused.", "where": "", "remedy": "", "details": (), **answer.document}


@dataclass(slots=True)
class Visit:
    """A request of somebody who is logged in. All of their pages are below the path `base`."""

    request: Request
    client: Client
    who: Credentials
    base: str
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def token(self) -> str:
        """Return a text for each form, made from the session's secret, so that no other page can send the form."""
        return _seal(self.who, _FORM)

    def path(self, name: str) -> str:
        """Return a part of the requested path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a part of the query behind the path."""
        return self.request.query_params.get(name, default)

    def read(self, *names: str) -> dict[str, str]:
        """Return these fields of the form; a field that was not sent is empty."""
        return {name: self.form.get(name, "") for name in names}

    def to(self, path: str) -> str:
        """Return the address of a page of the desk."""
        return self.base + path

    async def ask(self, call: str, arguments: Mapping[str, str] | None = None, body: str = "") -> dict[str, Any]:
        """Return a document of the backend; raises `Wrong` where it refuses."""
        return dict((await self.fetch(call, arguments, body)).document)

    async def fetch(self, call: str, arguments: Mapping[str, str] | None = None, body: str = "") -> BackendAnswer:
        """Return an answer of the backend, which may be a file; raises `Wrong` where it refuses."""
        answer = await self.client.ask(call, self.who, arguments, body)
        if answer.status != 200:
            raise Wrong(answer)
        return answer

    async def find_longest(self) -> int:
        """Return the most bytes that a form may have: more from somebody whom the backend knows, with a role."""
        return LONGEST_FORM if (await self.client.ask("me", self.who)).status == 200 else LONGEST_UNKNOWN

    async def render(self, template: str, document: Mapping[str, Any], *, status: int = 200, **context: Any) -> Response:
        """Return a page made from a document of the backend, which names the person who is logged in, and from `context`."""
        me = document.get("me") or (await self.ask("me"))["me"]
        note = self.query(SAID)
        given = {
            **document,
            **context,
            "me": me,
            "to": self.to,
            "here": self.request.scope["path"].removeprefix(self.base),
            "token": self.token,
            "sent": self.request.method == "POST",
            "note": note if note and hmac.compare_digest(self.query(SEAL), _seal(self.who, _NOTE, note)) else "",
            "version": __version__,
        }
        return show_page(template, given, status)

    def go(self, path: str, note: str = "", *, to: str = "") -> Response:
        """Return a redirection to a page with a note on what was done; the seal keeps others from putting any other note
        there."""
        address = self.to(path)
        if note:
            address += f"?{urlencode({SAID: note, SEAL: _seal(self.who, _NOTE, note)})}"
        return RedirectResponse(f"{address}#{quote(to)}" if to else address, 303)


Handler: TypeAlias = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Way:
    """A page: its path in Starlette's form, the function that answers, and whether it takes POST (`sends`) or GET."""

    path: str
    answer: Handler
    sends: bool = False


def show(path: str, template: str, call: str, *, sends: bool = False) -> Way:
    """Return a page that shows the answer of a call to the parts of its path."""

    async def answer(visit: Visit) -> Response:
        return await visit.render(template, await visit.ask(call, visit.request.path_params))

    return Way(path, answer, sends)


def give(path: str, call: str, *, sends: bool = False, shown: bool = False) -> Way:
    """Return a page that gives the file that a call answers to the parts of its path."""

    async def answer(visit: Visit) -> Response:
        return pass_on(await visit.fetch(call, visit.request.path_params), shown=shown)

    return Way(path, answer, sends)


def show_page(template: str, given: Mapping[str, Any], status: int = 200) -> Response:
    """Return a page of ours under the strictest policy: no script and no style but the desk's own files."""
    page = HTMLResponse(_TEMPLATES.get_template(template).render(**given), status)
    page.headers["Content-Security-Policy"] = POLICY
    return page


class _Passed(StreamingResponse):
    """A file of the backend, piece by piece; its connection ends with the answer, however that ends."""

    def __init__(self, answer: BackendAnswer) -> None:
        assert answer.file is not None  # noqa: S101  for the type checker
        self._file = answer.file
        super().__init__(self._file.aiter_raw(), media_type=self._file.headers["content-type"])
        self.headers["Content-Length"] = self._file.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._file.aclose()


def pass_on(answer: BackendAnswer, *, shown: bool = False) -> Response:
    """Return a file of the backend, to be saved. One that is `shown`, in a frame of the desk, gets no right except its styles and
    scripts, by their hashes."""
    response = _Passed(answer)
    if not shown:
        response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(answer.name)}"
        response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
        return response
    styles, scripts = (_name_hashes(answer.facts.get(kind, ())) for kind in ("style", "script"))
    sandbox = "sandbox allow-scripts" if answer.facts.get("script") else "sandbox"
    policy = f"default-src 'none'; style-src {styles}; script-src {scripts}; {sandbox}; frame-ancestors 'self'"
    response.headers["Content-Security-Policy"] = f"{policy}; base-uri 'none'; form-action 'none'"
    response.headers["X-Frame-Options"] = "SAMEORIGIN"
    return response


def _name_hashes(hashes: Iterable[str]) -> str:
    return " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"


async def read_form(
    request: Request, longest: int, find_longest: Callable[[], Awaitable[int]] | None = None
) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the fields and files of a form that was sent, each name once. `read_body` describes the limits of its length."""
    body = await read_body(request.stream(), longest, find_longest)
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() == "multipart/form-data":
        return _read_parts(kind, body)
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=500)
    except ValueError:
        raise Refused(400, _NO_FORM) from None
    return {name: values[0] for name, values in fields.items() if len(values) == 1}, {}


def _read_parts(kind: str, body: bytes) -> tuple[dict[str, str], dict[str, bytes]]:
    """Return the fields and files of a form as browsers send it. A parser of mail would also take parts within parts, at any
    cost."""
    named = _BOUNDARY.search(kind)
    first, *parts = (b"\r\n" + body).split(b"\r\n--" + named[1].encode(), _MOST_PARTS + 1) if named else [body]
    if first or not parts or not parts[-1].startswith(b"--"):
        raise Refused(400, _NO_FORM)
    fields: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for part in parts[:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        dispositions = _DISPOSITION.findall(head + b"\r\n")
        if len(dispositions) != 1 or head + b"\r\n\r\n" + content != part:
            raise Refused(400, _NO_FORM)
        name, has_file, file = dispositions[0]
        key = name.decode("utf-8", "replace")
        if has_file:
            files[f"{key}/{file.decode('utf-8', 'replace')}"] = content
        else:
            fields[key] = content.decode("utf-8", "replace")
    return fields, files


def check_form(visit: Visit) -> None:
    """Refuse a form that comes from no page of this session."""
    if not hmac.compare_digest(visit.form.get(FORM_TOKEN, "").encode(), visit.token.encode()):
        raise Refused(403, "this form is of another session, or of none: load the page again.")


def _seal(who: Credentials, what: str, words: str = "") -> str:
    key = who.session or "".join(value for _, value in who.proxy)
    return hmac.new(key.encode(), f"{what}\0{words}".encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
