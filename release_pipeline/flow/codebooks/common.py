"""What readers of codebooks have in common: what they find, and how long a text may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from release_pipeline.errors import SourceError
from release_pipeline.policy.kinds.labels import LONGEST_WORDS
from release_pipeline.store.survey_files import SurveyColumn

AGAIN = "Deliver it again, or write a CSV with the columns column, label, value, value_label."
MOST_TEXT = LONGEST_WORDS  # characters of one text
MOST_LISTED = 50  # contributors, places or keywords


@dataclass(slots=True)
class Study:
    """What a codebook, or a file, says of the data as a whole; nothing where it says nothing. `licence`: its name, and its
    address. `contributors`: who, and as what; `first` and `last`: periods, as they stand there."""

    title: str = ""
    description: str = ""
    licence: tuple[str, str] = ("", "")
    publisher: tuple[str, str] = ("", "")
    contact: tuple[str, str, str] = ("", "", "")
    contributors: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    places: list[str] = field(default_factory=list[str])
    first: str = ""
    last: str = ""
    sampling: str = ""
    keywords: list[str] = field(default_factory=list[str])
    citation: str = ""


@dataclass(frozen=True, slots=True)
class Codebook:
    """What is described: columns by their names, and the data as a whole."""

    columns: Mapping[str, SurveyColumn]
    study: Study


def decode_text(content: bytes, where: str) -> str:
    """The text of a codebook that is one."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError("the codebook is not UTF-8 text.", where=where, remedy="Convert it to UTF-8.") from None


def add_listed(listed: list[str], text: str) -> None:
    """One more of a list, unless it is there or the list is long."""
    if text and text not in listed and len(listed) < MOST_LISTED:
        listed.append(text)
