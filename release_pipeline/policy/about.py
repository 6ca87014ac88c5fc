"""What the public is told of the data as a whole, in the steward's words: what they are, whose, for what, and on which terms.
Nothing of it is inferred, and nothing that is released depends on it; it is approved with the policy all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, model_validator

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.audience import Audience
from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.formats import name_some
from release_pipeline.policy.kinds.base import ColumnKind
from release_pipeline.policy.kinds.labels import Label, LabelledColumn, LabelledEntries, Words
from release_pipeline.policy.periods import EXAMPLE, PATTERN, Every, begin_of, end_of
from release_pipeline.policy.scalars import unique
from release_pipeline.privacy.figures import count_of

_CODE = re.compile(r"-?[0-9]+")
_PERIODS: tuple[Every, ...] = get_args(Every)
_SAY_PERIOD = "must be a year, a quarter, a month, a week or a day, like " + ", ".join(
    EXAMPLE[each] for each in ("year", "quarter", "month", "week", "day")
)
LICENCES = {  # by their SPDX identifiers: what each is called, and where it stands
    "CC0-1.0": ("Creative Commons Zero 1.0 Universal", "https://creativecommons.org/publicdomain/zero/1.0/"),
    "CC-BY-4.0": ("Creative Commons Attribution 4.0 International", "https://creativecommons.org/licenses/by/4.0/"),
    "CC-BY-SA-4.0": (
        "Creative Commons Attribution Share Alike 4.0 International",
        "https://creativecommons.org/licenses/by-sa/4.0/",
    ),
    "CC-BY-NC-4.0": (
        "Creative Commons Attribution Non Commercial 4.0 International",
        "https://creativecommons.org/licenses/by-nc/4.0/",
    ),
    "ODbL-1.0": ("Open Data Commons Open Database License v1.0", "https://opendatacommons.org/licenses/odbl/1-0/"),
    "ODC-By-1.0": ("Open Data Commons Attribution License v1.0", "https://opendatacommons.org/licenses/by/1-0/"),
    "PDDL-1.0": ("Open Data Commons Public Domain Dedication & License 1.0", "https://opendatacommons.org/licenses/pddl/1-0/"),
    "OGL-UK-3.0": (
        "Open Government Licence v3.0",
        "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
    ),
    "DL-DE-BY-2.0": ("Data licence Germany - attribution - version 2.0", "https://www.govdata.de/dl-de/by-2-0"),
    "etalab-2.0": ("Etalab Open License 2.0", "https://www.etalab.gouv.fr/licence-ouverte-open-licence/"),
}


def _web(address: str) -> str:
    try:
        parts = urlsplit(address)
        good = address.startswith(("http://", "https://")) and parts.hostname and "@" not in parts.netloc
    except ValueError:
        good = False
    if not good or re.search(r"[^\x21-\x7e]|[\"<>\\^`{|}]", address):
        raise ValueError("must be an address like https://example.org/health")
    return address


def _mail(address: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", address) is None:
        raise ValueError("must be an address like data@example.org")
    return address


def _orcid(text: str) -> str:
    digits = text.removeprefix("https://orcid.org/")
    if re.fullmatch(r"\d{4}-\d{4}-\d{4}-\d{3}[\dX]", digits) is None or _check_digit(digits.replace("-", "")[:-1]) != digits[-1]:
        raise ValueError("must be an ORCID iD with its check digit, like 0000-0002-1825-0097")
    return digits


def _check_digit(digits: str) -> str:
    """Of an ORCID iD, by ISO 7064 (MOD 11-2)."""
    total = 0
    for digit in digits:
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11]


def _period(value: Any) -> str:
    text = str(value) if isinstance(value, int | date) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise ValueError(_SAY_PERIOD)
    try:
        _span(text)
    except InvalidArgument:
        raise ValueError(_SAY_PERIOD) from None
    return text


def _span(text: str) -> tuple[datetime, datetime]:
    """When a period begins, and the first moment after it."""
    fitting: list[Every] = [each for each in _PERIODS if re.fullmatch(PATTERN[each], text)]
    every = fitting[0] if fitting else "year"
    return begin_of(every, text), end_of(every, text)


Web = Annotated[StrictStr, Field(max_length=500), AfterValidator(_web)]
Mail = Annotated[StrictStr, Field(max_length=254), AfterValidator(_mail)]
Orcid = Annotated[StrictStr, AfterValidator(_orcid)]
Period = Annotated[StrictStr, BeforeValidator(_period)]


class Licence(Frozen):
    """On which terms the data may be used: a licence with an SPDX identifier, or one by its name and address."""

    name: Label
    url: Web | None = None

    @model_validator(mode="after")
    def _findable(self) -> Licence:
        if self.url is not None and self.name in LICENCES:
            raise ValueError(
                f"'{self.name}' is known, and where it stands: leave the url out, or name terms of your own otherwise"
            )
        if self.url is None and self.name not in LICENCES:
            near = ", ".join(LICENCES)
            raise ValueError(f"'{self.name}' is no licence that is known here ({near}): name its url too")
        return self

    @property
    def title(self) -> str:
        """What it is called."""
        return LICENCES[self.name][0] if self.name in LICENCES else self.name

    @property
    def address(self) -> str:
        """Where it can be read."""
        return self.url or LICENCES[self.name][1]


class Party(Frozen):
    """Who publishes."""

    name: Label
    url: Web | None = None


class Contributor(Frozen):
    """Who had a part in the data, and which: who conceived the study (creator), collected it, prepared the release (curator),
    paid, or helped otherwise."""

    name: Label
    role: Literal["creator", "collector", "curator", "funder", "contributor"] = "contributor"
    organisation: Label | None = None
    orcid: Orcid | None = None


class Contact(Frozen):
    """Who answers questions about the data."""

    name: Label | None = None
    email: Mail | None = None
    url: Web | None = None

    @model_validator(mode="after")
    def _reachable(self) -> Contact:
        if self.email is None and self.url is None:
            raise ValueError("needs an email or a url")
        return self


class Coverage(Frozen):
    """Which places and which time the records are about. Times are years, quarters, months, weeks or days, the last included."""

    places: Annotated[tuple[Label, ...], AfterValidator(unique), Option(hint="List them, like [Alder, Birch].")] = ()
    first: Period | None = None
    last: Period | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Coverage:
        if (self.first is None) != (self.last is None):
            raise ValueError("needs both first and last, or neither")
        if self.days is not None and self.days[0] > self.days[1]:
            raise ValueError("ends before it begins")
        if not self.places and self.days is None:
            raise ValueError("needs places, or first and last")
        return self

    @property
    def days(self) -> tuple[date, date] | None:
        """The first day and the last."""
        if self.first is None or self.last is None:
            return None
        return _span(self.first)[0].date(), (_span(self.last)[1] - timedelta(days=1)).date()


def _licence(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class About(Frozen):
    """What the data are. `title` to `contact` are needed before an officer can approve the policy, the rest is asked for."""

    title: Annotated[Label, Option(hint="Say in a few words what the data are, as a reader would look for them.")]
    description: Annotated[Words, Option(hint="Say what the data are, of whom, and how they came about.")]
    licence: Annotated[
        Licence,
        BeforeValidator(_licence),
        Option(hint="Name the licence, like CC-BY-4.0, or {name: OUR TERMS, url: https://...}."),
    ]
    publisher: Annotated[Party, Option(hint="Say who publishes, like {name: Office of Statistics}.")]
    contact: Annotated[
        Contact, Option(hint="Say who answers questions, like {email: data@example.org} or {url: https://example.org/help}.")
    ]
    contributors: Annotated[
        tuple[Contributor, ...], Option(hint="List who had a part in the data, like [{name: Ana Silva, role: collector}].")
    ] = ()
    coverage: Annotated[
        Coverage | None, Option(hint="Say which places and time, like {places: [Alder, Birch], first: 2024, last: 2024}.")
    ] = None
    sampling: Words | None = None
    keywords: Annotated[tuple[Label, ...], AfterValidator(unique), Option(hint="List them, like [income, housing].")] = ()
    citation: Words | None = None
    intended_use: Words | None = None

    def describe(self) -> str:
        """The data, their terms and whose they are, on one line."""
        return f"{self.title}; {self.licence.title}; published by {self.publisher.name}"

    def list_lacking(self) -> Iterator[str]:
        """What readers are used to find, and is not said."""
        for name in ("contributors", "coverage", "sampling", "keywords", "intended_use"):
            if not getattr(self, name):
                yield name


def find_unsaid(audience: Audience | None, about: About | None, columns: Mapping[str, ColumnKind]) -> Iterator[str]:
    """What an officer must be able to read before they approve, and is not said: who may read the data, what they are as a whole,
    and what each released column has. A sentence each, with what to write."""
    if audience is None:
        yield "audience is missing: say who may read the release (public, {licensed: TERMS} or internal)."
    if about is None:
        yield (
            "about is missing: say what the data are (title, description), on which terms (licence), who publishes them "
            "(publisher) and who answers for them (contact)."
        )
    if unlabelled := list_unlabelled(columns):
        count = count_of(len(unlabelled), "released column")
        yield f"{count} without a label ({name_some(unlabelled)}): say in a few words what each has, like label: Family income."


def list_unlabelled(columns: Mapping[str, ColumnKind]) -> list[str]:
    """The released columns of which nothing says what they have."""
    return [name for name, column in columns.items() if isinstance(column, LabelledColumn) and column.label is None]


def warn_of_unsaid(audience: Audience | None, about: About | None, columns: Mapping[str, ColumnKind]) -> Iterator[str]:
    """What keeps a policy from being approved, and what readers of a package will look for and not find."""
    for words in find_unsaid(audience, about, columns):
        yield f"will not be approved: {words}"
    if about is not None and (lacking := list(about.list_lacking())):
        yield f"about says nothing of {', '.join(lacking)}: readers look for that"
    if coded := [name for name, column in columns.items() if isinstance(column, LabelledEntries) and _has_bare_codes(column)]:
        yield (
            f"entries of {name_some(coded)} are numbers and have no labels: where they are codes, readers cannot know what they "
            "mean"
        )


def _has_bare_codes(column: LabelledEntries) -> bool:
    """Whether listed entries are numbers of nothing that is measured, and none of them is said to mean anything."""
    entries = column.listed_entries
    return bool(entries) and not column.labels and column.unit is None and all(_CODE.fullmatch(entry) for entry in entries)
