"""The backend's answers: who asks is found out, whether they may is looked up, and what goes wrong is told in words.

Whoever has the desk's web process can ask in the name of people who are logged in there, for as long as they are. They get what
these people may see, and nothing else: no call signs, and none takes a path.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from release_pipeline.desk.backend import approving, auditing, home, reviewing, signing, stewarding
from release_pipeline.desk.backend.access import Attempts, Sessions
from release_pipeline.desk.backend.calls import Asked, Call, Document, File
from release_pipeline.desk.backend.drafts import Drafts
from release_pipeline.desk.backend.lookups import shorten_place
from release_pipeline.desk.people import Person, read_people
from release_pipeline.desk.protocol import CallRequest
from release_pipeline.desk.tokens import find_token
from release_pipeline.desk.viewings import Viewings
from release_pipeline.door import Refused, hash_secret
from release_pipeline.door.proxies import ProxyHeaders
from release_pipeline.errors import ReleasePipelineError, StoreBusy, WrongUsage
from release_pipeline.flow.opening import find_release
from release_pipeline.flow.site import Site

CALLS = (
    *(*home.CALLS, *reviewing.CALLS, *signing.CALLS),
    *(*stewarding.CALLS, *approving.CALLS, *auditing.CALLS),
)
ENTER, LEAVE, GREET = "enter", "leave", "greet"
_LOG = logging.getLogger(__name__)
_NOT_IN = "you are not logged in, or no longer: sessions end by themselves."
_SHARED = ("registry.duckdb", "site.yaml", "trusted-keys.yaml", "trusted-keys.sig")


@dataclass(frozen=True, slots=True)
class Answer:
    """A document or a file, with a status as HTTP has them."""

    status: int
    document: Document = field(default_factory=dict[str, Any])
    file: File | None = None


class Backend:
    """Answers the calls of one site's desk. With a proxy, it says who somebody is; else personal tokens do."""

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
        """The answer, whatever happens: what nobody foresaw is noted here, and told without a word of its content."""
        try:
            return self._answer(request)
        except Refused as refused:
            return _tell(refused.status, refused.words)
        except StoreBusy as busy:
            return self._refuse(503, busy, remedy="Load the page again in a moment.")
        except WrongUsage as wrong:
            return self._refuse(400, wrong)
        except ReleasePipelineError as error:
            return self._refuse(409, error)
        except Exception:
            number = secrets.token_hex(4)
            _LOG.exception("call %r failed (%s)", request.call[:40], number)
            return _tell(500, f"this went wrong inside, and is noted as {number}.", "", "Tell the operator this number.")

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
        found = call.answer(asked)
        if call.shows:
            self._note(person.name, call.shows, _find_shown(call, asked, found), found)
        return Answer(200, file=found) if isinstance(found, File) else Answer(200, {**found, "me": describe_person(person)})

    def _note(self, person: str, saw: str, release: str, given: Document | File) -> None:
        """That somebody sees what is given; where that cannot be noted it is not given."""
        try:
            if release:
                self._viewings.note(person, saw, release, find=lambda name: str(find_release(self._site, name)))
        except BaseException:
            if isinstance(given, File):
                given.discard()
            raise

    def _greet(self) -> Document:
        """What the web process must know of the proxy in front of it; the secret is not for it."""
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
        secret, place = self._sessions.begin(token.person, token.digest)
        return Answer(200, {"session": secret, "place": place})

    def _find_person(self, request: CallRequest) -> Person:
        """Who asks, by the proxy or by their session."""
        if self._proxy is not None:
            headers = [(name.encode("latin-1", "replace"), value.encode("latin-1", "replace")) for name, value in request.proxy]
            name = self._proxy.find_person(headers)
        else:
            session = self._sessions.find(request.session, request.place)
            if session is None or find_token(self._site, session.token) is None:
                raise Refused(401, _NOT_IN)
            name = session.person
        person = self._people().get(name)
        if person is None:
            raise Refused(403, "you have no role at this desk. The officer or the operator gives it.")
        return person

    def _people(self) -> dict[str, Person]:
        """Who works here now: read again when a file that says it was changed."""
        stamps = tuple(_stamp(self._site.home / name) for name in _SHARED)
        with self._lock:
            if self._known is None or self._known[0] != stamps:
                self._known = (stamps, read_people(self._site))
            return self._known[1]

    def _refuse(self, status: int, error: ReleasePipelineError, *, remedy: str | None = None) -> Answer:
        """In its words, but for where the site lies on its machine, which is no reader's business."""
        said = (error.what, error.where, error.remedy if remedy is None else remedy, *error.details)
        what, where, to_do, *details = (shorten_place(self._site, one) for one in said)
        return _tell(status, what, where, to_do, tuple(details))


def _find_shown(call: Call, asked: Asked, found: Document | File) -> str:
    """By which name the release was asked for of which a candidate is shown; none where the answer has nothing of one."""
    if call.of == "subject" and asked.get("what") != "candidate":
        return ""
    if not isinstance(found, File) and found.get("candidate", found) is None:
        return ""
    return asked.get(call.of)


def describe_person(person: Person) -> Document:
    """Who is logged in, for every page."""
    return {"name": person.name, "roles": sorted(role.value for role in person.roles)}


def _tell(status: int, what: str, where: str = "", remedy: str = "", details: tuple[str, ...] = ()) -> Answer:
    return Answer(status, {"what": what, "where": where, "remedy": remedy, "details": list(details)})


def _stamp(file: Any) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
