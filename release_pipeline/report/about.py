"""What a package says of its data as a whole: the steward's words, and how to cite them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from release_pipeline.report.card import About, Contact, ContributorView, Coverage, Licence, Publisher
from release_pipeline.sentences import PUBLIC


@dataclass(frozen=True, slots=True)
class AboutView:
    """What the data are, as the policy declares it. `licence`: its name, title and address; `publisher` and `contact`: who, and
    where; `first` and `last`: the days that records are about. Of what nobody said there is nothing."""

    title: str
    description: str
    licence: tuple[str, str, str]
    publisher: tuple[str, str | None]
    contact: tuple[str | None, str | None, str | None]
    contributors: tuple[ContributorView, ...] = ()
    places: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    sampling: str | None = None
    keywords: tuple[str, ...] = ()
    citation: str | None = None
    intended_use: str | None = None
    recipients: str | None = None

    def cite(self, release: str, published: str) -> str:
        """How to cite a release: in the steward's words, or made of what is declared."""
        if self.citation is not None:
            return self.citation
        creators = [one.name for one in self.contributors if one.role == "creator"]
        who = "; ".join(creators) or self.publisher[0]
        year, publisher = published[:4], self.publisher[0]
        if not creators:
            return PUBLIC("about.cited", who=who, year=year, title=self.title, release=release)
        return PUBLIC("about.citation", who=who, year=year, title=self.title, release=release, publisher=publisher)

    def list_facts(self) -> Iterator[tuple[str, str]]:
        """Each fact in words, with what it is about."""
        _, title, address = self.licence
        yield PUBLIC("about.licence"), PUBLIC("about.with_address", words=title, address=address)
        yield PUBLIC("about.publisher"), _with_address(*self.publisher)
        yield PUBLIC("about.contact"), ", ".join(part for part in self.contact if part)
        if self.contributors:
            yield PUBLIC("about.contributors"), "; ".join(one.words for one in self.contributors)
        if self.places:
            yield PUBLIC("about.places"), ", ".join(self.places)
        if self.first is not None:
            yield PUBLIC("about.time"), PUBLIC("about.from_to", first=self.first, last=self.last or "")
        if self.sampling is not None:
            yield PUBLIC("about.sampling"), self.sampling
        if self.intended_use is not None:
            yield PUBLIC("about.intended_use"), self.intended_use
        if self.recipients is not None:
            yield PUBLIC("about.recipients"), self.recipients
        if self.keywords:
            yield PUBLIC("about.keywords"), ", ".join(self.keywords)

    def to_card(self, release: str, published: str) -> About:
        """As the card has it."""
        name, title, address = self.licence
        who, email, url = self.contact
        return About(
            title=self.title,
            description=self.description,
            licence=Licence(name=name, title=title, url=address),
            publisher=Publisher(name=self.publisher[0], url=self.publisher[1]),
            contact=Contact(name=who, email=email, url=url),
            contributors=self.contributors,
            coverage=Coverage(places=self.places, first=self.first, last=self.last),
            sampling=self.sampling,
            keywords=self.keywords,
            citation=self.cite(release, published),
            intended_use=self.intended_use,
            recipients=self.recipients,
        )


@dataclass(frozen=True, slots=True)
class ColumnWords:
    """What readers are told of a column in the words of the policy: what it has, in which unit, what there is to know of it, what
    people were asked, and what its entries mean."""

    name: str
    label: str | None = None
    unit: str | None = None
    description: str | None = None
    question: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


def _with_address(words: str, address: str | None) -> str:
    return words if address is None else PUBLIC("about.with_address", words=words, address=address)
