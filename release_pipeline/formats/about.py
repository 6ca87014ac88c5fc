"""The steward's description of a package's data as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from release_pipeline.mechanisms.basis.figures import join_names
from release_pipeline.sentences import PUBLIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """The terms on which the data may be used."""

    name: Annotated[str, "Its SPDX identifier, or its name."]
    title: Annotated[str, "What it is called."]
    url: Annotated[str, "Where it can be read."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """The office that publishes the data."""

    name: Annotated[str, "Their name."]
    url: Annotated[str | None, "Where they are found."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """The contact for questions about the data."""

    name: Annotated[str | None, "Their name."]
    email: Annotated[str | None, "Their address."]
    url: Annotated[str | None, "Where they are found."]


@dataclass(frozen=True, slots=True)
class ContributorView:
    """Somebody who contributed to the data."""

    name: Annotated[str, "Their name."]
    role: Annotated[str, "enum:creator,collector,curator,funder,contributor", "Which part."]
    organisation: Annotated[str | None, "Where they are at home."] = None
    orcid: Annotated[str | None, "Their ORCID iD."] = None

    def describe(self) -> str:
        """Return name, organisation, role and ORCID iD as one phrase."""
        role = PUBLIC.read_section("contributor").get(self.role, self.role)
        parts = (self.name, self.organisation, role, f"ORCID {self.orcid}" if self.orcid else None)
        return join_names(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The population, places and times that the records cover."""

    places: Annotated[tuple[str, ...], "Which places."] = ()
    first: Annotated[str | None, "The first day."] = None
    last: Annotated[str | None, "The last day."] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The description of the data, written by the steward."""

    title: Annotated[str, "What they are called."]
    description: Annotated[str, "What they are, of whom, and how they came about."]
    licence: Licence
    publisher: Publisher
    contact: Contact
    contributors: Annotated[tuple[ContributorView, ...], "Who had a part in the data."] = ()
    coverage: Coverage = Coverage()
    sampling: Annotated[str | None, "How the records were drawn."] = None
    keywords: Annotated[tuple[str, ...], "What a reader may look for."] = ()
    citation: Annotated[str, "How to cite the release."] = ""
    intended_use: Annotated[str | None, "What it is meant for."] = None
    recipients: Annotated[str, "Who may read it, and on which terms."]


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """A policy's description of a column for readers: its label, unit, notes, the question people were asked, and what its
    entries mean."""

    name: str
    label: str | None = None
    unit: str | None = None
    description: str | None = None
    question: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


def cite(about: About, release: str, published: str) -> str:
    """Return the citation of a release: the steward's text, or one built from the declared facts."""
    if about.citation:
        return about.citation
    creators = [person.name for person in about.contributors if person.role == "creator"]
    who = "; ".join(creators) or about.publisher.name
    year, publisher = published[:4], about.publisher.name
    if not creators:
        return PUBLIC("about.cited", who=who, year=year, title=about.title, release=release)
    return PUBLIC("about.citation", who=who, year=year, title=about.title, release=release, publisher=publisher)


def list_facts(about: About) -> Iterator[tuple[str, str]]:
    """Yield each fact as a pair: its heading, then its text."""
    yield PUBLIC("about.licence"), _with_address(about.licence.title, about.licence.url)
    yield PUBLIC("about.publisher"), _with_address(about.publisher.name, about.publisher.url)
    contact, coverage = about.contact, about.coverage
    yield PUBLIC("about.contact"), ", ".join(part for part in (contact.name, contact.email, contact.url) if part)
    if about.contributors:
        yield PUBLIC("about.contributors"), "; ".join(person.describe() for person in about.contributors)
    if coverage.places:
        yield PUBLIC("about.places"), ", ".join(coverage.places)
    if coverage.first is not None:
        yield PUBLIC("about.time"), PUBLIC("about.from_to", first=coverage.first, last=coverage.last or "")
    if about.sampling is not None:
        yield PUBLIC("about.sampling"), about.sampling
    if about.intended_use is not None:
        yield PUBLIC("about.intended_use"), about.intended_use
    yield PUBLIC("about.recipients"), about.recipients
    if about.keywords:
        yield PUBLIC("about.keywords"), ", ".join(about.keywords)


def _with_address(name: str, address: str | None) -> str:
    return name if address is None else PUBLIC("about.with_address", words=name, address=address)
