"""Who has logged in with the token that was printed at the start. Nothing of it is on a disk: with the process all of it ends."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from release_pipeline.dagster_app.door.roles import Role
from release_pipeline.door.secrets import hash_secret

LASTS_SECONDS = 8 * 3600
_MOST = 100  # of each role: who may look cannot throw out who operates


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who was let in, and whether that still holds."""

    role: Role
    is_here: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Session:
    digest: str
    role: Role
    ends: float


class Sessions:
    """The tokens of a door, one for each role, and the sessions that were begun with them."""

    def __init__(self, roles: tuple[Role, ...], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = {role: secrets.token_urlsafe(32) for role in roles}
        self._clock = clock
        self._sessions: list[_Session] = []

    def enter(self, token: str) -> str | None:
        """The secret of a new session, if the token is one of ours; the oldest session of its role makes room."""
        roles = [role for role, known in self.tokens.items() if hmac.compare_digest(hash_secret(token), hash_secret(known))]
        if not roles:
            return None
        secret = secrets.token_urlsafe(32)
        new = _Session(hash_secret(secret), roles[0], self._clock() + LASTS_SECONDS)
        lasting = self._lasting()
        same = [one for one in lasting if one.role is new.role]
        self._sessions = [*(one for one in lasting if one.role is not new.role), *same[-(_MOST - 1) :], new]
        return secret

    def find(self, secret: str) -> Visitor | None:
        """Whose secret this is, if its session lasts."""
        session = self._find(secret)
        return None if session is None else Visitor(session.role, lambda: self._find(secret) is not None)

    def leave(self, secret: str) -> None:
        """End the session of this secret."""
        digest = hash_secret(secret)
        self._sessions = [one for one in self._sessions if not hmac.compare_digest(one.digest, digest)]

    def _find(self, secret: str) -> _Session | None:
        digest = hash_secret(secret)
        found = [one for one in self._lasting() if hmac.compare_digest(one.digest, digest)]
        return found[0] if found else None

    def _lasting(self) -> list[_Session]:
        now = self._clock()
        return [one for one in self._sessions if one.ends > now]
