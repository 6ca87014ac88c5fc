"""What a call of the backend is: its name, the roles that may make it, and what answers it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from release_pipeline.desk.backend.drafts import Drafts
from release_pipeline.desk.people import Person, Role
from release_pipeline.desk.viewings import Viewings
from release_pipeline.door import Refused
from release_pipeline.errors import WrongUsage
from release_pipeline.flow.site import Site

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
