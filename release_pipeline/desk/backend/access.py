"""Who is let in: sessions, tickets for programs on people's own machines, and wrong tokens. All of it is in memory only and ends
with the process of the backend.

Sessions are kept here, not in a signed cookie: a logout or a withdrawn token ends them at once, also copied ones, and whoever
has taken over the web process cannot make one.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from release_pipeline.door.refusal import Refused
from release_pipeline.door.secrets import hash_secret

LASTS_SECONDS, IDLE_SECONDS = 8 * 3600, 3600
_MOST_SESSIONS = 20  # of one person: nobody throws out others
TICKET_SECONDS = 1800
_MOST_TICKETS = 500
OVER = "this ticket is over, or was never given. Ask for another one at the desk."
MOST_WRONG, WRONG_SECONDS = 20, 60.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Session:
    """Whose it is, the hash of the token that it was begun with, and below which path its pages are: cookies are shared by all
    ports of a machine, and only a path that nobody else knows keeps them from a server of another account."""

    person: str
    token: str
    digest: str
    place: str
    ends: float
    seen: float


class Sessions:
    """The sessions of a backend. Threads of several calls use it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sessions: list[Session] = []
        self._lock = threading.Lock()

    def begin(self, person: str, token: str) -> tuple[str, str]:
        """The secret of a new session and its path; the oldest of the same person makes room."""
        secret, place, now = secrets.token_urlsafe(32), secrets.token_urlsafe(16), self._clock()
        new = Session(person, token, hash_secret(secret), place, now + LASTS_SECONDS, now)
        with self._lock:
            lasting = self._lasting(now)
            mine = [one for one in lasting if one.person == person]
            self._sessions = [*(one for one in lasting if one.person != person), *mine[-(_MOST_SESSIONS - 1) :], new]
        return secret, place

    def find(self, secret: str, place: str) -> Session | None:
        """The session with this secret, if it lasts and the path is its own; it was used now."""
        now = self._clock()
        with self._lock:
            self._sessions = self._lasting(now)
            found = self._find(secret)
            if found is None or not hmac.compare_digest(found.place.encode(), place.encode("utf-8", "surrogatepass")):
                return None
            self._sessions[self._sessions.index(found)] = replace(found, seen=now)
            return found

    def find_by_hash(self, digest: str) -> Session | None:
        """The session whose secret has this hash, if it lasts; it was not used for that."""
        with self._lock:
            found = [one for one in self._lasting(self._clock()) if hmac.compare_digest(one.digest, digest)]
        return found[0] if found else None

    def end(self, secret: str) -> None:
        """The session of this secret is over."""
        with self._lock:
            found = self._find(secret)
            self._sessions = [one for one in self._sessions if one is not found]

    def _find(self, secret: str) -> Session | None:
        digest = hash_secret(secret)
        found = [one for one in self._sessions if hmac.compare_digest(one.digest, digest)]
        return found[0] if found else None

    def _lasting(self, now: float) -> list[Session]:
        return [one for one in self._sessions if one.ends > now and one.seen + IDLE_SECONDS > now]


@dataclass(frozen=True, slots=True)
class Ticket:
    """For whom, of what (a candidate, a policy or the populations), what they want to say, and where they came from.

    `digest` is of what it was when they asked; `remarks` is the document that is to be signed beside, if there is one; `session`
    the hash of the session in which they asked, with which it ends (none behind a proxy).
    """

    person: str
    what: str
    subject: str
    digest: str
    verdict: str
    why: str
    back: str
    remarks: Mapping[str, Any] | None = None
    session: str = ""


class Tickets:
    """The tickets of a backend. Threads of several calls use it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tickets: list[tuple[str, float, Ticket]] = []
        self._lock = threading.Lock()

    def give(self, ticket: Ticket) -> str:
        """The secret of a ticket, whose person has no other for the same subject any more."""
        secret, now = secrets.token_urlsafe(32), self._clock()
        with self._lock:
            same = (ticket.person, ticket.subject)
            others = [one for one in self._lasting(now) if (one[2].person, one[2].subject) != same]
            self._tickets = [*others[-(_MOST_TICKETS - 1) :], (hash_secret(secret), now + TICKET_SECONDS, ticket)]
        return secret

    def find(self, secret: str) -> Ticket:
        """The ticket with this secret; refused when it is over."""
        digest = hash_secret(secret)
        with self._lock:
            self._tickets = self._lasting(self._clock())
            found = [ticket for known, _, ticket in self._tickets if hmac.compare_digest(known, digest)]
        if not found:
            raise Refused(404, OVER)
        return found[0]

    def end(self, secret: str) -> None:
        """What it was for is done."""
        digest = hash_secret(secret)
        with self._lock:
            self._tickets = [one for one in self._tickets if not hmac.compare_digest(one[0], digest)]

    def _lasting(self, now: float) -> list[tuple[str, float, Ticket]]:
        return [one for one in self._tickets if one[1] > now]


class Attempts:
    """The wrong tokens of the last minute. None can be guessed, and nobody is kept out for what others try."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: list[float] = []
        self._lock = threading.Lock()

    def note(self) -> None:
        """One more; refused as too many when there were `MOST_WRONG` within a minute. The first that is too many is logged."""
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
