"""Remarks that somebody has written and not signed yet: theirs alone, in a file of their own, until they sign or drop them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from release_pipeline.apps.desk.backend.people import Person, Role, Viewings
from release_pipeline.apps.door import Refused
from release_pipeline.errors import WrongUsage
from release_pipeline.policy.documents import read_as
from release_pipeline.store.files import write_text
from release_pipeline.store.site import Site

MOST_REMARKS, LONGEST_REMARK = 200, 2000
MOST_BYTES = 500_000  # of all drafts of a person: 120 of the longest remarks, of letters that take two bytes
_LONGEST_PASSAGE, _MOST_TARGETS = 200, 50


@dataclass(frozen=True, slots=True)
class DraftRemark:
    """What is to be said of which passage; the empty one is the whole."""

    passage: str
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody has to say of a target, as it had this hash when they began."""

    target: str
    digest: str
    remarks: tuple[DraftRemark, ...] = ()


@dataclass(frozen=True, slots=True)
class _Kept:
    drafts: tuple[Draft, ...] = ()


class Drafts:
    """The drafts of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def read(self, person: str, target: str, digest: str) -> Draft:
        """The person's draft of a target as it is now; what was written of it when it was another goes with that."""
        found = [one for one in self._read(person) if (one.target, one.digest) == (target, digest)]
        return found[0] if found else Draft(target, digest)

    def add(self, person: str, target: str, digest: str, remark: DraftRemark) -> None:
        """One more remark."""
        _check(remark)
        with self._site.changing_desk():
            mine = self.read(person, target, digest)
            if len(mine.remarks) >= MOST_REMARKS:
                raise WrongUsage(f"there are {MOST_REMARKS} remarks already.", where=target, remedy="Drop some, or join them.")
            text = self._join(person, Draft(target, digest, (*mine.remarks, remark)))
            if len(text.encode()) > MOST_BYTES:
                raise WrongUsage(
                    "your drafts are as long as what is kept of one person.",
                    where=target,
                    remedy="Sign or drop some of your remarks on this or another subject.",
                )
            write_text(self._file(person), text)

    def drop(self, person: str, target: str, digest: str, number: int) -> None:
        """Without the remark of this number; nothing happens where there is none."""
        with self._site.changing_desk():
            mine = self.read(person, target, digest)
            left = tuple(remark for place, remark in enumerate(mine.remarks) if place != number)
            self._keep(person, Draft(target, digest, left))

    def forget(self, person: str, target: str) -> None:
        """What was signed is a draft no more."""
        with self._site.changing_desk():
            self._keep(person, Draft(target, ""))

    def _keep(self, person: str, draft: Draft) -> None:
        write_text(self._file(person), self._join(person, draft))

    def _join(self, person: str, draft: Draft) -> str:
        """The text of the person's file with this draft in it."""
        others = [one for one in self._read(person) if one.target != draft.target]
        kept = _Kept((*others[-(_MOST_TARGETS - 1) :], *([draft] if draft.remarks else [])))
        return json.dumps(asdict(kept), ensure_ascii=False) + "\n"

    def _read(self, person: str) -> Sequence[Draft]:
        file = self._file(person)
        return read_as(_Kept, json.loads(file.read_bytes()), where=str(file)).drafts if file.exists() else ()

    def _file(self, person: str) -> Path:
        return self._site.desk / f"drafts-{person}.json"


def _check(remark: DraftRemark) -> None:
    if not remark.text.strip():
        raise WrongUsage("a remark says something.", where="remark", remedy="Write what you have to say of the passage.")
    if len(remark.text) > LONGEST_REMARK or len(remark.passage) > _LONGEST_PASSAGE:
        raise WrongUsage(f"a remark has at most {LONGEST_REMARK} characters.", where="remark", remedy="Make two of it.")
    if not all(char.isprintable() or char == "\n" for char in remark.text) or not remark.passage.isprintable():
        raise WrongUsage("a remark is plain text.", where="remark", remedy="Leave out what cannot be printed.")


# What a call of the backend is: its name, the roles that may make it, and what answers it.


EVERYBODY = frozenset(Role)
Document: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    """Bytes for the browser: of a file, or as they are; `name` where they are to be saved. `temporary`: gone once it was sent."""

    media: str
    path: Path | None = None
    content: bytes = b""
    name: str = ""
    temporary: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what the page is to know of it

    def discard(self) -> None:
        """What was made for this answer alone is gone, with the folder that it was made in."""
        if self.temporary and self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that was made: by whom, of which site, with which arguments and body."""

    site: Site
    person: Person
    drafts: Drafts
    viewings: Viewings
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""

    def get(self, name: str, *, most: int = 200) -> str:
        """An argument that must be there; none is longer than that."""
        value = self.arguments.get(name)
        if value is None:
            raise Refused(400, f"'{name}' is missing.")
        if len(value) > most:
            raise WrongUsage(f"this is longer than {most} characters.", where=name, remedy="Say it shorter.")
        return value

    def find(self, name: str, pattern: re.Pattern[str]) -> str:
        """An argument of that form; nothing else is passed on, to a path or anywhere."""
        value = self.get(name)
        if pattern.fullmatch(value) is None:
            raise Refused(404, "there is nothing of this name.")
        return value

    def has(self, *roles: Role) -> bool:
        """Whether who asks has one of these roles."""
        return not self.person.roles.isdisjoint(roles)


@dataclass(frozen=True, slots=True)
class Call:
    """A call, by name. `changes` says that its answer changes something, for the page to ask it by POST alone; `shows`, what
    of a candidate is seen in its answer, and by which argument it is named (`of`): that somebody saw it is noted."""

    name: str
    roles: frozenset[Role]
    answer: Callable[[Asked], Document | File]
    changes: bool = False
    shows: str = ""
    of: Literal["release", "subject"] = "release"


def allow(*roles: Role) -> frozenset[Role]:
    """These roles, and no other."""
    return frozenset(roles)
