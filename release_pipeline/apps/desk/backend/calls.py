"""The calls of the backend, and drafts of remarks: a file for each person with what they have written and not signed yet."""

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
from release_pipeline.trust.remarks import check_remarks
from release_pipeline.verifier.remarks import MOST_REMARKS, Remarks

MOST_BYTES = 500_000  # of all drafts of a person: 120 of the longest remarks, in letters of two bytes
_MOST_TARGETS = 50


@dataclass(frozen=True, slots=True)
class DraftRemark:
    """A remark on a passage; the empty passage is the whole."""

    passage: str
    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A person's remarks on a target, and the target's hash when they began."""

    target: str
    digest: str
    remarks: tuple[DraftRemark, ...] = ()


@dataclass(frozen=True, slots=True)
class _DraftsFile:
    drafts: tuple[Draft, ...] = ()


class Drafts:
    """The drafts of a site."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def read(self, person: str, target: str, digest: str) -> Draft:
        """Return the person's draft on the target as it is now, without remarks on an earlier content."""
        drafts = (draft for draft in self._read(person) if (draft.target, draft.digest) == (target, digest))
        return next(drafts, Draft(target, digest))

    def add(self, person: str, target: str, digest: str, remark: DraftRemark) -> None:
        """Add a remark; raises `WrongUsage` where it has not the form of remarks."""
        check_remarks(Remarks(target, digest, ((remark.passage, remark.text),)).document)
        if not all(char.isprintable() or char == "\n" for char in remark.text) or not remark.passage.isprintable():
            raise WrongUsage("a remark is plain text.", where="remark", remedy="Leave out what cannot be printed.")
        with self._site.changing_desk():
            mine = self.read(person, target, digest)
            if len(mine.remarks) >= MOST_REMARKS:
                raise WrongUsage(f"there are {MOST_REMARKS} remarks already.", where=target, remedy="Drop some, or join them.")
            text = self._join(person, Draft(target, digest, (*mine.remarks, remark)))
            if len(text.encode()) > MOST_BYTES:
                raise WrongUsage(
                    "your drafts are as long as a person's may be.",
                    where=target,
                    remedy="Sign or drop some of your remarks on this or another subject.",
                )
            write_text(self._file(person), text)

    def drop(self, person: str, target: str, digest: str, number: int) -> None:
        """Remove the remark of this number, if there is one."""
        with self._site.changing_desk():
            mine = self.read(person, target, digest)
            left = tuple(remark for index, remark in enumerate(mine.remarks) if index != number)
            self._keep(person, Draft(target, digest, left))

    def forget(self, person: str, target: str) -> None:
        """Remove the person's draft on a target: it was signed."""
        with self._site.changing_desk():
            self._keep(person, Draft(target, ""))

    def _keep(self, person: str, draft: Draft) -> None:
        write_text(self._file(person), self._join(person, draft))

    def _join(self, person: str, draft: Draft) -> str:
        """Return the text of the person's file with this draft in it."""
        others = [other for other in self._read(person) if other.target != draft.target]
        drafts = _DraftsFile((*others[-(_MOST_TARGETS - 1) :], *([draft] if draft.remarks else [])))
        return json.dumps(asdict(drafts), ensure_ascii=False) + "\n"

    def _read(self, person: str) -> Sequence[Draft]:
        file = self._file(person)
        return read_as(_DraftsFile, json.loads(file.read_bytes()), where=str(file)).drafts if file.exists() else ()

    def _file(self, person: str) -> Path:
        return self._site.desk / f"drafts-{person}.json"


EVERYBODY = frozenset(Role)
Document: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class File:
    """Bytes for the browser, from a file or from memory, with a `name` if they are to be saved. A `temporary` file is removed
    after it was sent."""

    media: str
    path: Path | None = None
    content: bytes = b""
    name: str = ""
    temporary: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what the page needs to know of it

    def discard(self) -> None:
        """Remove a temporary file, with the folder that it was made in."""
        if self.temporary and self.path is not None:
            shutil.rmtree(self.path.parent, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a person made of a site, with arguments and a body."""

    site: Site
    person: Person
    drafts: Drafts
    viewings: Viewings
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str = ""

    def get(self, name: str, *, most: int = 200) -> str:
        """Return an argument; refused where it is missing, or has more than `most` characters."""
        value = self.arguments.get(name)
        if value is None:
            raise Refused(400, f"'{name}' is missing.")
        if len(value) > most:
            raise WrongUsage(f"this is longer than {most} characters.", where=name, remedy="Say it shorter.")
        return value

    def find(self, name: str, pattern: re.Pattern[str]) -> str:
        """Return an argument that fits a pattern; any other is refused before it gets into a path or anywhere else."""
        value = self.get(name)
        if pattern.fullmatch(value) is None:
            raise Refused(404, "there is nothing of this name.")
        return value

    def has(self, *roles: Role) -> bool:
        """Return whether the person who asks has one of these roles."""
        return not self.person.roles.isdisjoint(roles)


@dataclass(frozen=True, slots=True)
class Call:
    """A call by name, with the roles that may make it. `changes`: its answer changes something, so pages ask it by POST only.
    `shows`: what of a candidate its answer shows, named by the argument `of`; each viewing is recorded."""

    name: str
    roles: frozenset[Role]
    answer: Callable[[Asked], Document | File]
    changes: bool = False
    shows: str = ""
    of: Literal["release", "subject"] = "release"
