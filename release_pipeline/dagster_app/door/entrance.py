"""How somebody comes in with the token of the start: the page for it, the cookie that follows, and the way out.

The token stands behind the # of the link, which browsers send to nobody: neither a log nor a Referer has it. The page posts it.
Cookies are shared by all ports of a machine, so that any server of another account at 127.0.0.1 would be sent ours; only its path
keeps it from them. So everything of Dagster's is below a path that nobody else knows, made anew at each start; and each role has
its own, or who may look could have the cookie of who operates sent to such a server.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import parse_qs

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from release_pipeline.dagster_app.door import Role
from release_pipeline.door import hash_secret
from release_pipeline.door.addresses import Headers, read_one

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
    """Login and logout: a token for each role, and the sessions that were begun with them. All of it is in memory only and ends
    with the process."""

    def __init__(self, roles: Iterable[Role], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = {role: secrets.token_urlsafe(32) for role in roles}
        self.prefixes = {role: f"/{secrets.token_urlsafe(16)}" for role in self.tokens}
        self._clock = clock
        self._sessions: dict[str, tuple[Role, float]] = {}  # by the hash of its secret: its role, and when it ends

    def find(self, headers: Headers) -> Role | None:
        """The role of who asks, by the cookie."""
        sessions = (self._sessions.get(hash_secret(secret)) for secret in _read_cookies(headers))
        return next((role for role, ends in filter(None, sessions) if ends > self._clock()), None)

    def show_login(self, *, words: str = "", status: int = 200) -> Response:
        """The page that asks for the token."""
        nonce = secrets.token_urlsafe(16)
        page = HTMLResponse(_PAGES.get_template("login.html").render(words=words, nonce=nonce), status)
        page.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'"
        )
        return page

    def show_logout(self) -> Response:
        """The page that asks whether to go."""
        page = HTMLResponse(_PAGES.get_template("logout.html").render())
        page.headers["Content-Security-Policy"] = "default-src 'none'; form-action 'self'; base-uri 'none'"
        return page

    def log_in(self, form: bytes) -> Response:
        """A session, if the form has the token."""
        said = parse_qs(form.decode("latin-1"))
        token, now = hash_secret(said.get("token", [""])[0].strip()), self._clock()
        role = next((role for role, known in self.tokens.items() if hmac.compare_digest(token, hash_secret(known))), None)
        if role is None:
            return self.show_login(words="This is not the token of this start. Each start of the UI prints another.", status=403)
        secret, prefix = secrets.token_urlsafe(32), self.prefixes[role]
        self._sessions = {digest: session for digest, session in self._sessions.items() if session[1] > now}
        self._sessions[hash_secret(secret)] = (role, now + LASTS_SECONDS)
        answer = RedirectResponse(prefix + _FIRST_PAGE, 303)
        answer.set_cookie(_COOKIE, secret, max_age=LASTS_SECONDS, path=prefix, httponly=True, samesite="strict")
        return answer

    def log_out(self, request: Request, prefix: str) -> Response:
        """No session any more."""
        for secret in _read_cookies(request.scope["headers"]):
            self._sessions.pop(hash_secret(secret), None)
        answer = RedirectResponse(LOGIN, 303)
        answer.delete_cookie(_COOKIE, path=prefix, httponly=True, samesite="strict")
        return answer


def _read_cookies(headers: Headers) -> list[str]:
    """Every cookie of our name: a server at another port may have set one too, which then is only one more wrong one."""
    pairs = (part.strip().partition("=") for part in (read_one(headers, b"cookie") or "").split(";"))
    return [secret for name, _, secret in pairs if name == _COOKIE][:_MOST_COOKIES]
