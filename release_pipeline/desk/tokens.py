"""Personal tokens for the desk, where no proxy says who somebody is: made by the site's account, given to one person, and kept as
hashes in a file that nobody else reads."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from release_pipeline.desk.people import read_people
from release_pipeline.door import hash_secret
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.files import write_text
from release_pipeline.flow.site import Site
from release_pipeline.policy.load import read_text
from release_pipeline.policy.typed import read_as

LASTS_DAYS, MOST_DAYS = 90, 366
_FILE = "tokens.json"


@dataclass(frozen=True, slots=True)
class Token:
    """Whose it is, the hash of it, and from when until when it lets them in."""

    person: str
    digest: str
    made: str
    ends: str


@dataclass(frozen=True, slots=True)
class _Kept:
    tokens: tuple[Token, ...] = ()


def make_token(site: Site, person: str, *, days: int = LASTS_DAYS, now: datetime | None = None) -> str:
    """A new token of somebody who works at the desk; earlier ones go on until they end or are withdrawn."""
    people = read_people(site)
    if person not in people:
        raise WrongUsage(
            "nobody of this name works at the desk.",
            where=person,
            remedy=f"There are: {', '.join(people) or 'none'}. `trust` puts a key on the list; site.yaml names others: "
            "desk: {people: {NAME: [auditor]}}.",
        )
    if not 1 <= days <= MOST_DAYS:
        raise WrongUsage(f"a token lasts 1 to {MOST_DAYS} days.", where="--days", remedy=f"As in --days {LASTS_DAYS}.")
    now, secret = now or datetime.now(UTC), secrets.token_urlsafe(32)
    new = Token(person, hash_secret(secret), _write(now), _write(now + timedelta(days=days)))
    with site.changing_desk():
        _keep(site, [*(token for token in _read(site) if token.ends > _write(now)), new])
    return secret


def withdraw_tokens(site: Site, person: str) -> int:
    """The person's tokens let nobody in any more; how many there were."""
    with site.changing_desk():
        kept = _read(site)
        left = [token for token in kept if token.person != person]
        _keep(site, left)
    return len(kept) - len(left)


def list_tokens(site: Site, *, now: datetime | None = None) -> list[Token]:
    """The tokens that let somebody in now, in the order of people and ends."""
    moment = _write(now or datetime.now(UTC))
    return sorted((token for token in _read(site) if token.ends > moment), key=lambda token: (token.person, token.ends))


def find_token(site: Site, digest: str, *, now: datetime | None = None) -> Token | None:
    """The token with this hash, if it lets anybody in now."""
    moment = _write(now or datetime.now(UTC))
    found = [token for token in _read(site) if hmac.compare_digest(token.digest, digest) and token.ends > moment]
    return found[0] if found else None


def _keep(site: Site, tokens: Iterable[Token]) -> None:
    kept = _Kept(tuple(tokens))
    write_text(_file(site), json.dumps(asdict(kept)) + "\n")


def _read(site: Site) -> tuple[Token, ...]:
    file = _file(site)
    return read_as(_Kept, json.loads(read_text(file)), where=str(file)).tokens if file.exists() else ()


def _file(site: Site) -> Path:
    return site.desk / _FILE


def _write(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
