"""Tickets: each lets a program on somebody's own machine fetch one bundle, and bring back what was signed, for a while."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from release_pipeline.door.refusal import Refused
from release_pipeline.door.secrets import hash_secret

LASTS_SECONDS = 1800
_MOST = 500
OVER = "this ticket is over, or was never given. Ask for another one at the desk."


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
    """The tickets of a counter. Threads of several questions use it."""

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
            self._tickets = [*others[-(_MOST - 1) :], (hash_secret(secret), now + LASTS_SECONDS, ticket)]
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
