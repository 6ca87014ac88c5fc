"""Where people reach the site's desk, as site.yaml says under `desk`: for the links in notices, and those that let people in."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from release_pipeline.flow.site import Site
from release_pipeline.policy.text import Path as Place
from release_pipeline.policy.text import Problem
from release_pipeline.policy.typed import Plain

SECTION, ADDRESS = "desk", "address"
_PORT = r"(?::[1-9][0-9]{0,4})?"
_ORIGIN = re.compile(rf"https://[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?{_PORT}|http://(?:127\.0\.0\.1|localhost){_PORT}")


def read_desk_address(site: Site) -> str:
    """The address without anything behind it; the empty text where none is said."""
    said = site.read_section(SECTION, _find_faults)
    return str(said.get(ADDRESS, "")) if isinstance(said, Mapping) else ""


def find_address_faults(said: Plain) -> Iterator[Problem]:
    """What is wrong with an address: another than by https could be read, and changed, on its way."""
    if not isinstance(said, str) or _ORIGIN.fullmatch(said) is None:
        place: Place = (SECTION, ADDRESS)
        yield (
            place,
            "this is no address of the desk.",
            'As in "https://desk.example.org", with nothing behind it; by http this machine alone.',
        )


def _find_faults(said: Plain) -> Iterator[Problem]:
    if isinstance(said, Mapping) and ADDRESS in said:
        yield from find_address_faults(said[ADDRESS])
