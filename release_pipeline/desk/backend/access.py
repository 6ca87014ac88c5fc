"""Who is let in: sessions, and how many wrong tokens came. Both are in memory only and end with the process of the backend.

Sessions are kept here, not in a signed cookie: a logout or a withdrawn token ends them at once, also copied ones, and whoever
has taken over the web process cannot make one.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from release_pipeline.door import Refused, hash_secret

LASTS_SECONDS, IDLE_SECONDS = 8 * 3600, 3600
_MOST_SESSIONS = 20  # of one person: nobody throws out others
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
