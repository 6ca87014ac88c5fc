"""People who work at the desk and their roles, the tokens by which they log in, and records of who saw which candidate.

The people are those of the list of trusted keys, and those named in site.yaml. A role here decides what somebody may see and ask
for. Decisions are signed, and the protocol checks signatures by the list of trusted keys.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, ClassVar, cast

from pydantic import BeforeValidator, Field, StrictStr, TypeAdapter

from release_pipeline.apps.door import Refused, hash_secret
from release_pipeline.errors import WrongUsage
from release_pipeline.policy.documents import read_as
from release_pipeline.policy.loading.load import read_text
from release_pipeline.store.files import write_text
from release_pipeline.store.settings import Say, Settings, meets
from release_pipeline.store.site import SECTION, DeskAddress, Site
from release_pipeline.trust.members import read_trust
from release_pipeline.verifier.documents import NAME

_EXAMPLE = "As in: desk: {people: {vic: [auditor], ana: [steward, operator]}}."


class Role(Enum):
    """The role of a person at the desk."""

    STEWARD = "steward"
    REVIEWER = "reviewer"
    OFFICER = "officer"
    AUDITOR = "auditor"
    OPERATOR = "operator"


_TRUSTED = {"steward": Role.STEWARD, "reviewer": Role.REVIEWER, "officer": Role.OFFICER}  # of the list of trusted keys


@dataclass(frozen=True, slots=True)
class Person:
    """A person, by the name that policies and keys have."""

    name: str
    roles: frozenset[Role]


def _read_list(given: object) -> list[Any] | None:
    return cast("list[Any]", given) if isinstance(given, list) else None


_Name = Annotated[
    StrictStr,
    meets(lambda name: NAME.fullmatch(name) is not None),
    Say("this is no name of a person.", "Use lower-case letters, digits, hyphens."),
]
_Roles = Annotated[
    frozenset[Role],
    Field(min_length=1),
    BeforeValidator(_read_list),
    Say("roles are a list.", f"Of: {', '.join(role.value for role in Role)}."),
]


class DeskSettings(Settings):
    """The section `desk` of site.yaml: people besides those with keys, and the desk's address."""

    mapping: ClassVar[tuple[str, str]] = ("the desk's settings are keys with values.", _EXAMPLE)

    people: Annotated[
        dict[_Name, _Roles],
        BeforeValidator(lambda value: {} if value is None else value),
        Say("people are names with lists of roles.", _EXAMPLE),
    ] = Field(default_factory=dict[str, frozenset[Role]])
    address: DeskAddress = ""


_SECTION: TypeAdapter[DeskSettings] = TypeAdapter(DeskSettings)


def read_desk(site: Site) -> DeskSettings:
    """Return the section `desk` of site.yaml; raises an error with every fault."""
    settings: DeskSettings | None = site.read_section(SECTION, _SECTION)
    return DeskSettings() if settings is None else settings


def read_people(site: Site) -> dict[str, Person]:
    """Return everyone who may come to the desk, by name."""
    roles: dict[str, set[Role]] = {name: set(given) for name, given in read_desk(site).people.items()}
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
    for member in () if trust is None else trust.members:
        if member.role in _TRUSTED:
            roles.setdefault(member.name, set()).add(_TRUSTED[member.role])
    return {name: Person(name, frozenset(given)) for name, given in sorted(roles.items())}


# Personal tokens, where no proxy names people: the site's account makes one for a person, and keeps its hash in a file that only
# this account reads.


LASTS_DAYS, MOST_DAYS = 90, 366
_FILE = "tokens.json"


@dataclass(frozen=True, slots=True)
class Token:
    """The hash of a token, its person, and its first and last moment."""

    person: str
    digest: str
    made: str
    ends: str


@dataclass(frozen=True, slots=True)
class _TokensFile:
    tokens: tuple[Token, ...] = ()


def make_token(site: Site, person: str, *, days: int = LASTS_DAYS, now: datetime | None = None) -> str:
    """Return a new token for somebody who works at the desk; earlier ones count until they end or are withdrawn."""
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
    """End all tokens of a person, and return how many there were."""
    with site.changing_desk():
        tokens = _read(site)
        left = [token for token in tokens if token.person != person]
        _keep(site, left)
    return len(tokens) - len(left)


def find_token(site: Site, digest: str, *, now: datetime | None = None) -> Token | None:
    """Return the token with this hash if it is valid now, or None."""
    moment = _write(now or datetime.now(UTC))
    matching = (token for token in _read(site) if hmac.compare_digest(token.digest, digest) and token.ends > moment)
    return next(matching, None)


def _keep(site: Site, tokens: Iterable[Token]) -> None:
    write_text(_file(site), json.dumps(asdict(_TokensFile(tuple(tokens)))) + "\n")


def _read(site: Site) -> tuple[Token, ...]:
    file = _file(site)
    return read_as(_TokensFile, json.loads(read_text(file)), where=str(file)).tokens if file.exists() else ()


def _file(site: Site) -> Path:
    return site.desk / _FILE


def _write(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")


# Records of who saw or took away which part of a candidate at the desk, and when: a line for each, in a file for each month that
# only the site's account reads. They are kept for two years, which is long enough for an audit, and not for ever.


KEPT_MONTHS = 24
AGAIN_SECONDS = 600  # a page that is loaded once more within that is the same viewing
_MOST_RECENT = 10_000
_VIEWINGS_FILE = re.compile(r"viewings-(\d{4})-(\d{2})\.jsonl")


@dataclass(frozen=True, slots=True)
class Viewing:
    """The record that a person saw something of a release."""

    at: str
    person: str
    saw: str
    release: str


class Viewings:
    """The viewings of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._recent: dict[tuple[str, str, str], float] = {}
        self._lock = threading.Lock()

    def note(self, person: str, saw: str, asked: str, *, find: Callable[[str], str] = str, now: datetime | None = None) -> None:
        """Record a viewing of the release that `find` gives for the name that was asked, unless the same was asked some minutes
        ago; raises `Refused` where it cannot be recorded."""
        key, moment = (person, saw, asked), monotonic()
        with self._lock:
            if moment - self._recent.get(key, -AGAIN_SECONDS) < AGAIN_SECONDS:
                return
            at, release = now or datetime.now(UTC), find(asked)
            line = json.dumps(asdict(Viewing(at.isoformat(timespec="seconds"), person, saw, release)))
            try:
                with self._site.changing_desk():
                    self._write(at, line)
            except OSError:
                raise Refused(
                    503, "who sees this could not be noted, so that it is not shown. Tell the operator: is the site's disk full?"
                ) from None
            if len(self._recent) >= _MOST_RECENT:
                self._recent.clear()
            self._recent[key] = moment

    def list_of(self, release: str) -> list[Viewing]:
        """Return the viewings of a release, the newest first; a line that was not written whole is skipped."""
        viewings = [viewing for viewing in self._read(json.dumps(release).encode()) if viewing.release == release]
        return sorted(viewings, key=lambda viewing: viewing.at, reverse=True)

    def forget_old(self, *, now: datetime | None = None) -> None:
        """Remove the files of months that are over for `KEPT_MONTHS`."""
        today = now or datetime.now(UTC)
        for file, months in self._list_files():
            if 12 * today.year + today.month - months > KEPT_MONTHS:
                file.unlink(missing_ok=True)

    def _write(self, at: datetime, line: str) -> None:
        file = self._site.desk / f"viewings-{at:%Y-%m}.jsonl"
        is_new = not file.exists()
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "r+b") as lines:
            if (size := lines.seek(0, os.SEEK_END)) > 0:
                lines.seek(size - 1)
                line = line if lines.read(1) == b"\n" else f"\n{line}"  # a crash, or a full disk, left an incomplete line
            lines.write(f"{line}\n".encode())
        if is_new:
            self.forget_old(now=at)

    def _read(self, part: bytes) -> Iterator[Viewing]:
        """Yield the viewings whose line has this part."""
        for file, _ in self._list_files():
            for line in file.read_bytes().split(b"\n"):
                if part in line:
                    with suppress(ValueError, TypeError):
                        yield Viewing(**json.loads(line))

    def _list_files(self) -> list[tuple[Path, int]]:
        """Return the files, each with the number of its month."""
        named = [(file, _VIEWINGS_FILE.fullmatch(file.name)) for file in self._site.desk.glob("viewings-*.jsonl")]
        return sorted((file, 12 * int(name[1]) + int(name[2])) for file, name in named if name is not None)
