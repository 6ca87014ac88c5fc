"""Where people reach the site's desk, as site.yaml says under `desk`: for the links in notices, and those that let people in."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, StrictStr, TypeAdapter

from release_pipeline.errors import WrongUsage
from release_pipeline.flow.settings import Say, meets
from release_pipeline.flow.site import Site

SECTION = "desk"
_PORT = r"(?::[1-9][0-9]{0,4})?"
_ORIGIN = re.compile(rf"https://[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?{_PORT}|http://(?:127\.0\.0\.1|localhost){_PORT}")
_REFUSAL = Say(
    "this is no address of the desk.",
    'As in "https://desk.example.org", with nothing behind it; by http this machine alone.',
)
DeskAddress: TypeAlias = Annotated[  # another than by https could be read, and changed, on its way
    StrictStr,
    meets(lambda text: _ORIGIN.fullmatch(text) is not None),
    _REFUSAL,
]


class _OfAddress(BaseModel):
    """What of the section is asked here: the rest is the desk's (`desk.people`)."""

    model_config = ConfigDict(extra="ignore")

    address: DeskAddress = ""


_SECTION: TypeAdapter[Any] = TypeAdapter(_OfAddress)


def read_desk_address(site: Site) -> str:
    """The address without anything behind it; the empty text where none is said."""
    said: _OfAddress | None = site.read_section(SECTION, _SECTION)
    return "" if said is None else said.address


def check_desk_address(text: str, *, where: str) -> str:
    """The address that somebody named; `WrongUsage` where site.yaml would not take it either."""
    address = text.removesuffix("/").lower()
    if _ORIGIN.fullmatch(address) is None:
        raise WrongUsage(_REFUSAL.what, where=where, remedy=_REFUSAL.remedy)
    return address
