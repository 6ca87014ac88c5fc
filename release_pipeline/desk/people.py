"""Who works at the desk, in which roles: the people of the list of trusted keys, and whom site.yaml names.

A role here says what somebody may look at and ask for. What counts is signed, and the protocol asks the list of trusted keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar, cast

from pydantic import BeforeValidator, Field, StrictStr, TypeAdapter

from release_pipeline.flow.desk_address import SECTION, DeskAddress
from release_pipeline.flow.settings import Say, Settings, meets
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.members import read_trust

_EXAMPLE = "As in: desk: {people: {vic: [auditor], ana: [steward, operator]}}."
NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")


class Role(Enum):
    """What somebody does here."""

    STEWARD = "steward"
    REVIEWER = "reviewer"
    OFFICER = "officer"
    AUDITOR = "auditor"
    OPERATOR = "operator"


_TRUSTED = {"steward": Role.STEWARD, "reviewer": Role.REVIEWER, "officer": Role.OFFICER}  # of the list of trusted keys


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody, by the name that policies and keys have."""

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
    """What site.yaml says of the desk: people beside those with keys, and where people reach it."""

    mapping: ClassVar[tuple[str, str]] = ("the desk's settings are keys with values.", _EXAMPLE)

    people: Annotated[
        dict[_Name, _Roles],
        BeforeValidator(lambda said: {} if said is None else said),
        Say("people are names with lists of roles.", _EXAMPLE),
    ] = Field(default_factory=dict[str, frozenset[Role]])
    address: DeskAddress = ""


_SECTION: TypeAdapter[DeskSettings] = TypeAdapter(DeskSettings)


def read_desk(site: Site) -> DeskSettings:
    """What stands under `desk` in site.yaml; refused with every fault."""
    said: DeskSettings | None = site.read_section(SECTION, _SECTION)
    return DeskSettings() if said is None else said


def read_people(site: Site) -> dict[str, Person]:
    """Everybody who may come to the desk, by name."""
    roles: dict[str, set[Role]] = {name: set(given) for name, given in read_desk(site).people.items()}
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
    for member in () if trust is None else trust.members:
        if member.role in _TRUSTED:
            roles.setdefault(member.name, set()).add(_TRUSTED[member.role])
    return {name: Person(name, frozenset(given)) for name, given in sorted(roles.items())}
