"""Who works at the desk, in which roles: the people of the list of trusted keys, and whom site.yaml names.

A role here says what somebody may look at and ask for. What counts is signed, and the protocol asks the list of trusted keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import cast

from release_pipeline.flow.desk_address import ADDRESS, SECTION, find_address_faults
from release_pipeline.flow.site import Site
from release_pipeline.flow.trust.members import read_trust
from release_pipeline.policy.messages import suggest
from release_pipeline.policy.text import Problem
from release_pipeline.policy.typed import Plain

_PEOPLE, _RUNS, _DAGSTER = "people", "runs", "dagster"
_EXAMPLE = "As in: desk: {people: {vic: [auditor], ana: [steward, operator]}}."
NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/[A-Za-z0-9._~/-]*)?")


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


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """What site.yaml says of the desk: people beside those with keys, whether stewards and operators may start runs here, and
    where the site's Dagster is, for links."""

    people: Mapping[str, frozenset[Role]]
    runs: bool = False
    dagster: str = ""


def read_desk(site: Site) -> DeskSettings:
    """What stands under `desk` in site.yaml; refused with every fault."""
    said = site.read_section(SECTION, _find_faults)
    if not isinstance(said, Mapping):
        return DeskSettings({})
    people = cast("Mapping[str, list[str]]", said.get(_PEOPLE) or {})
    roles = {name: frozenset(map(Role, given)) for name, given in people.items()}
    return DeskSettings(roles, said.get(_RUNS) is True, str(said.get(_DAGSTER) or ""))


def read_people(site: Site) -> dict[str, Person]:
    """Everybody who may come to the desk, by name."""
    roles: dict[str, set[Role]] = {name: set(given) for name, given in read_desk(site).people.items()}
    with site.open_registry(read_only=True) as registry:
        trust = read_trust(site, registry)
    for member in () if trust is None else trust.members:
        if member.role in _TRUSTED:
            roles.setdefault(member.name, set()).add(_TRUSTED[member.role])
    return {name: Person(name, frozenset(given)) for name, given in sorted(roles.items())}


def _find_faults(said: Plain) -> Iterator[Problem]:
    if said is None:
        return
    if not isinstance(said, Mapping):
        yield (SECTION,), "the desk's settings are keys with values.", _EXAMPLE
        return
    for name, value in said.items():
        place = (SECTION, name)
        if name == _PEOPLE:
            yield from _find_people_faults(value)
        elif name == _RUNS:
            if not isinstance(value, bool):
                yield place, "runs says whether runs may be started at the desk.", "Say true or false."
        elif name == _DAGSTER:
            if not isinstance(value, str) or _ADDRESS.fullmatch(value) is None:
                yield place, "this is no address of Dagster's pages.", 'As in "https://dagster.example.org".'
        elif name == ADDRESS:
            yield from find_address_faults(value)
        else:
            yield place, f"'{name}' is not known here.", suggest(str(name), (_PEOPLE, _RUNS, _DAGSTER, ADDRESS))


def _find_people_faults(said: Plain) -> Iterator[Problem]:
    if not isinstance(said, Mapping):
        yield (SECTION, _PEOPLE), "people are names with lists of roles.", _EXAMPLE
        return
    known = [role.value for role in Role]
    for name, roles in said.items():
        place = (SECTION, _PEOPLE, name)
        if not isinstance(name, str) or NAME.fullmatch(name) is None:
            yield place, "this is no name of a person.", "Use lower-case letters, digits, hyphens."
        if not isinstance(roles, list) or not roles or not all(isinstance(role, str) and role in known for role in roles):
            yield place, "roles are a list.", f"Of: {', '.join(known)}."
