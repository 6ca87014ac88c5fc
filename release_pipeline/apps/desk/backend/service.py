"""The backend's answers: it finds out who asks, checks whether they may, and describes errors.

Anyone who takes over the desk's web process can ask in the name of people who are logged in there, while they are. They get what
these people may see, and nothing else: no call signs, and none takes a path.

Sessions and the count of wrong tokens are in memory, and end with the process. Sessions are kept here, not in a signed cookie: a
logout or a withdrawn token ends them at once, also copied ones, and a captured web process cannot make one.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from release_pipeline.apps.desk.backend import approving, home, reviewing, signing
from release_pipeline.apps.desk.backend.calls import Asked, Call, Document, Drafts, File
from release_pipeline.apps.desk.backend.lookups import shorten_path
from release_pipeline.apps.desk.backend.people import Person, Viewings, find_token, read_people
from release_pipeline.apps.desk.backend.protocol import CallRequest
from release_pipeline.apps.door import ProxyHeaders, Refused, hash_secret
from release_pipeline.errors import ReleasePipelineError, StoreBusy, WrongUsage
from release_pipeline.pipeline.opening import find_release
from release_pipeline.store.site import Site

LASTS_SECONDS, IDLE_SECONDS = 8 * 3600, 3600
_MOST_SESSIONS = 20  # for each person, so that one person's sessions never end those of another
MOST_WRONG, WRONG_SECONDS = 20, 60.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """A person's session: the hash of its token, the hash of its secret, and the path of its pages. Browsers share cookies among
    all ports of a machine; only a secret path keeps them from another account's server."""

    person: str
    token: str
    digest: str
    path: str
    ends: float
    seen: float


class Sessions:
    """The sessions of a backend. Threads of several calls use it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: list[Session] = []
        self._lock = threading.Lock()

    def begin(self, person: str, token: str) -> tuple[str, str]:
        """Return the secret of a new session and its path; it replaces the oldest of the same person if there are too many."""
        secret, path, now = secrets.token_urlsafe(32), secrets.token_urlsafe(16), self._clock()
        new = Session(person, token, hash_secret(secret), path, now + LASTS_SECONDS, now)
        with self._lock:
            lasting = self._lasting(now)
            mine = [session for session in lasting if session.person == person]
            others = (session for session in lasting if session.person != person)
            self._sessions = [*others, *mine[-(_MOST_SESSIONS - 1) :], new]
        return secret, path

    def find(self, secret: str, path: str) -> Session | None:
        """Return the session with this secret, if it lasts and has this path, and count it as used now."""
        now = self._clock()
        with self._lock:
            self._sessions = self._lasting(now)
            session = self._find(secret)
            if session is None or not hmac.compare_digest(session.path.encode(), path.encode("utf-8", "surrogatepass")):
                return None
            self._sessions[self._sessions.index(session)] = replace(session, seen=now)
            return session

    def end(self, secret: str) -> None:
        """End the session of this secret."""
        with self._lock:
            ended = self._find(secret)
            self._sessions = [session for session in self._sessions if session is not ended]

    def _find(self, secret: str) -> Session | None:
        digest = hash_secret(secret)
        return next((session for session in self._sessions if hmac.compare_digest(session.digest, digest)), None)

    def _lasting(self, now: float) -> list[Session]:
        return [session for session in self._sessions if session.ends > now and session.seen + IDLE_SECONDS > now]


class Attempts:
    """Counts the wrong tokens of the last minute. No token can be guessed, and nobody is locked out by the attempts of others."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: list[float] = []
        self._lock = threading.Lock()

    def note(self) -> None:
        """Count one more; raises `Refused` where there were `MOST_WRONG` within a minute before it. The first refusal is
        logged."""
        now = self._clock()
        with self._lock:
            before = [moment for moment in self._moments if moment + WRONG_SECONDS > now]
            self._moments = [*before[-MOST_WRONG:], now]
        if len(before) < MOST_WRONG:
            return
        if len(before) == MOST_WRONG:
            _LOG.warning("more than %d wrong tokens within a minute: somebody guesses, or a link is out of date", MOST_WRONG)
        raise Refused(
            429, f"more than {MOST_WRONG} wrong tokens came within a minute, and this was another. The operator is told."
        )


CALLS = (*home.CALLS, *reviewing.CALLS, *signing.CALLS, *approving.CALLS)
ENTER, LEAVE, GREET = "enter", "leave", "greet"
_NOT_IN = "you are not logged in, or no longer: sessions end by themselves."
_SHARED = ("registry.duckdb", "site.yaml", "trusted-keys.yaml", "trusted-keys.sig")


@dataclass(frozen=True, slots=True)
class Answer:
    """A document or a file, with an HTTP status."""

    status: int
    document: Document = field(default_factory=dict[str, Any])
    file: File | None = None


class Backend:
    """Answers the calls of one site's desk. People are named by a proxy, or else by personal tokens."""

    def __init__(self, site: Site, *, proxy: ProxyHeaders | None = None, sessions: Sessions | None = None) -> None:
        self._site, self._proxy = site, proxy
        self._sessions = sessions or Sessions()
        self._wrong = Attempts()
        self._drafts, self._viewings = Drafts(site), Viewings(site)
        self._viewings.forget_old()
        self._calls: Mapping[str, Call] = {call.name: call for call in CALLS}
        self._known: tuple[Any, dict[str, Person]] | None = None
        self._lock = threading.Lock()

    def answer(self, request: CallRequest) -> Answer:
        """Return the answer to any request; an unforeseen error is logged here, and the answer has nothing of its text."""
        try:
            return self._answer(request)
        except Refused as refused:
            return _make_refusal(refused.status, refused.words)
        except StoreBusy as busy:
            return self._refuse(503, busy, remedy="Load the page again in a moment.")
        except WrongUsage as wrong:
            return self._refuse(400, wrong)
        except ReleasePipelineError as error:
            return self._refuse(409, error)
        except Exception:
            number = secrets.token_hex(4)
            _LOG.exception("call %r failed (%s)", request.call[:40], number)
            return _make_refusal(500, f"this went wrong inside, and is noted as {number}.", "", "Tell the operator this number.")

    def _answer(self, request: CallRequest) -> Answer:
        if request.call == ENTER:
            return self._enter(request)
        if request.call == GREET:
            return Answer(200, self._greet())
        person = self._find_person(request)
        if request.call == LEAVE:
            self._sessions.end(request.session)
            return Answer(200)
        call = self._calls.get(request.call)
        if call is None:
            raise Refused(404, "there is nothing of this name.")
        if call.roles.isdisjoint(person.roles):
            needed = " or ".join(sorted(role.value for role in call.roles))
            raise Refused(403, f"this is for {needed}, and you are here as {', '.join(describe_person(person)['roles'])}.")
        asked = Asked(self._site, person, self._drafts, self._viewings, request.arguments, request.body)
        given = call.answer(asked)
        if call.shows:
            self._note(person.name, call.shows, _find_shown(call, asked, given), given)
        return Answer(200, file=given) if isinstance(given, File) else Answer(200, {**given, "me": describe_person(person)})

    def _note(self, person: str, saw: str, release: str, given: Document | File) -> None:
        """Record that somebody sees an answer; raises an error where that cannot be recorded, so that it is not given."""
        try:
            if release:
                self._viewings.note(person, saw, release, find=lambda name: str(find_release(self._site, name)))
        except BaseException:
            if isinstance(given, File):
                given.discard()
            raise

    def _greet(self) -> Document:
        """Return what the web process must know of the proxy in front of it, without the secret."""
        proxy = self._proxy
        if proxy is None:
            return {"hosts": [], "secret_header": "", "person_header": ""}
        return {"hosts": list(proxy.hosts), "secret_header": proxy.secret_header, "person_header": proxy.person_header}

    def _enter(self, request: CallRequest) -> Answer:
        if self._proxy is not None:
            raise Refused(404, "the proxy logs people in here.")
        token = find_token(self._site, hash_secret(request.arguments.get("token", "")))
        if token is None or token.person not in self._people():
            self._wrong.note()
            raise Refused(403, "this is no token that lets anybody in. Ask the operator for another one.")
        secret, path = self._sessions.begin(token.person, token.digest)
        return Answer(200, {"session": secret, "path": path})

    def _find_person(self, request: CallRequest) -> Person:
        """Return the person who asks, by the proxy or by their session."""
        if self._proxy is not None:
            headers = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in request.proxy]
            name = self._proxy.find_person(headers)
        else:
            session = self._sessions.find(request.session, request.path)
            if session is None or find_token(self._site, session.token) is None:
                raise Refused(401, _NOT_IN)
            name = session.person
        person = self._people().get(name)
        if person is None:
            raise Refused(403, "you have no role at this desk. The officer or the operator gives it.")
        return person

    def _people(self) -> dict[str, Person]:
        """Return the people who work here now, read again after a change of the files that name them."""
        stamps = tuple(_stamp(self._site.home / name) for name in _SHARED)
        with self._lock:
            if self._known is None or self._known[0] != stamps:
                self._known = (stamps, read_people(self._site))
            return self._known[1]

    def _refuse(self, status: int, error: ReleasePipelineError, *, remedy: str | None = None) -> Answer:
        """Return the answer that has the error, without the site's path on its machine."""
        parts = (error.what, error.where, error.remedy if remedy is None else remedy, *error.details)
        what, where, to_do, *details = (shorten_path(self._site, part) for part in parts)
        return _make_refusal(status, what, where, to_do, tuple(details))


def _find_shown(call: Call, asked: Asked, given: Document | File) -> str:
    """Return the name by which somebody asked for the release whose candidate is shown; empty where the answer shows none."""
    if call.of == "subject" and asked.get("what") != "candidate":
        return ""
    if not isinstance(given, File) and given.get("candidate", given) is None:
        return ""
    return asked.get(call.of)


def describe_person(person: Person) -> Document:
    """Return the person who is logged in, for every page."""
    return {"name": person.name, "roles": sorted(role.value for role in person.roles)}


def _make_refusal(status: int, what: str, where: str = "", remedy: str = "", details: tuple[str, ...] = ()) -> Answer:
    return Answer(status, {"what": what, "where": where, "remedy": remedy, "details": list(details)})


def _stamp(file: Any) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
