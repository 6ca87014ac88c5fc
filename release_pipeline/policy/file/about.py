"""The audience of a release, and the descriptions that a policy must have for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StrictStr, model_validator

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.figures import count_of
from release_pipeline.policy.kinds.base import ColumnKind, Label, LabelledColumn, LabelledEntries, Words
from release_pipeline.policy.values.formats import name_some
from release_pipeline.policy.values.periods import EXAMPLE, PATTERN, Every, begin_of, end_of
from release_pipeline.policy.values.scalars import Frozen, Option, unique
from release_pipeline.sentences import POLICY

Reader: TypeAlias = Literal["public", "licensed", "internal"]


class Everybody(Frozen):
    """Everybody may read the release, for a stated reason: it may link more rows than is usual for the public."""

    public: Annotated[Words, Option(hint="Say why more than 10% of the rows may be linked; the card shows it.")]


class Licensed(Frozen):
    """Only readers bound by terms may read the release."""

    licensed: Annotated[Words, Option(hint="Name the readers and their terms, like: Researchers who signed the terms of use.")]


def _read_audience(value: Any) -> Any:
    """Refuse a mapping that names no kind of reader, or an empty one, before the types are tried."""
    if not isinstance(value, dict):
        return value
    given = cast(dict[str, Any], value)
    if len(given) != 1:
        raise ValueError("must name one kind of reader: public, internal, {licensed: TERMS}, or {public: REASON}")
    [(readers, text)] = given.items()
    if readers == "internal":
        raise ValueError("internal takes no text: write audience: internal")
    if readers not in ("licensed", "public"):
        raise ValueError(
            f"'{readers}' is no kind of reader: allowed are public, internal, {{licensed: TERMS}}, {{public: REASON}}"
        )
    if not isinstance(text, str) or not text.strip():
        asked = "name the readers and their terms" if readers == "licensed" else "give the reason, or write audience: public"
        raise ValueError(f"{readers} is empty: {asked}")
    return given


Audience: TypeAlias = Annotated[Everybody | Licensed | Literal["public", "internal"], BeforeValidator(_read_audience)]


def name_readers(audience: Audience) -> Reader:
    """Return the kind of readers."""
    if isinstance(audience, Everybody):
        return "public"
    return "licensed" if isinstance(audience, Licensed) else audience


def find_terms(audience: Audience) -> str | None:
    """Return the terms of licensed readers, or the reason for a public release that links more rows than is usual."""
    if isinstance(audience, Everybody):
        return audience.public
    return audience.licensed if isinstance(audience, Licensed) else None


def describe_audience(audience: Audience | None) -> str:
    """Return a sentence on who may read a release: with the terms of licensed readers, or the reason of a public release."""
    if audience is None:
        return POLICY("audience.missing")
    if isinstance(audience, Everybody):
        return POLICY("audience.public_for_a_reason", terms=audience.public)
    if isinstance(audience, Licensed):
        return POLICY("audience.licensed", terms=audience.licensed)
    return POLICY("audience.public") if audience == "public" else POLICY("audience.internal")


# The steward's description of the data as a whole: what they are, whose, for what, and on which terms. Nothing is inferred, and
# no released value depends on it; it is still approved with the policy.


_CODE = re.compile(r"-?[0-9]+")
_PERIODS: tuple[Every, ...] = get_args(Every)
_SAY_PERIOD = "must be a year, a quarter, a month, a week or a day, like " + ", ".join(
    EXAMPLE[each] for each in ("year", "quarter", "month", "week", "day")
)
LICENCES = {  # by SPDX identifier: the name of each, and its address
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
    """Return the check digit of an ORCID iD, by ISO 7064 (MOD 11-2)."""
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
    """Return when a period begins, and the first moment after it."""
    fitting: list[Every] = [each for each in _PERIODS if re.fullmatch(PATTERN[each], text)]
    every = fitting[0] if fitting else "year"
    return begin_of(every, text), end_of(every, text)


Web = Annotated[StrictStr, Field(max_length=500), AfterValidator(_web)]
Mail = Annotated[StrictStr, Field(max_length=254), AfterValidator(_mail)]
Orcid = Annotated[StrictStr, AfterValidator(_orcid)]
Period = Annotated[StrictStr, BeforeValidator(_period)]


class Licence(Frozen):
    """The terms of use of the data: a licence with an SPDX identifier, or one by its name and address."""

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
        """Return the name of the licence."""
        return LICENCES[self.name][0] if self.name in LICENCES else self.name

    @property
    def address(self) -> str:
        """Return the address of its text."""
        return self.url or LICENCES[self.name][1]


class Party(Frozen):
    """The publisher."""

    name: Label
    url: Web | None = None


class Contributor(Frozen):
    """A contributor to the data, and the role: who conceived the study (creator), collected it, prepared the release (curator),
    paid, or helped otherwise."""

    name: Label
    role: Literal["creator", "collector", "curator", "funder", "contributor"] = "contributor"
    organisation: Label | None = None
    orcid: Orcid | None = None


class Contact(Frozen):
    """The contact for questions about the data."""

    name: Label | None = None
    email: Mail | None = None
    url: Web | None = None

    @model_validator(mode="after")
    def _reachable(self) -> Contact:
        if self.email is None and self.url is None:
            raise ValueError("needs an email or a url")
        return self


class Coverage(Frozen):
    """The places and the time that the records cover. Times are years, quarters, months, weeks or days, the last included."""

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
        """Return the first day and the last; None if no time is stated."""
        if self.first is None or self.last is None:
            return None
        return _span(self.first)[0].date(), (_span(self.last)[1] - timedelta(days=1)).date()


def _licence(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class About(Frozen):
    """The description of the data. `title` to `contact` are needed before an officer can approve the policy, the rest is
    optional."""

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
        """Return the data, their terms and their owner, on one line."""
        return f"{self.title}; {self.licence.title}; published by {self.publisher.name}"

    def list_lacking(self) -> list[str]:
        """Return the items that readers usually look for and that are missing."""
        return [name for name in ("contributors", "coverage", "sampling", "keywords", "intended_use") if not getattr(self, name)]


def find_unsaid(audience: Audience | None, about: About | None, columns: Mapping[str, ColumnKind]) -> Iterator[str]:
    """Yield a sentence for each missing item that an officer must be able to read before approval, with what to write: who may
    read the data, what they are as a whole, and what each released column contains."""
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
    """Return the released columns without any description."""
    return [name for name, column in columns.items() if isinstance(column, LabelledColumn) and column.label is None]


def warn_of_unsaid(audience: Audience | None, about: About | None, columns: Mapping[str, ColumnKind]) -> Iterator[str]:
    """Yield what keeps a policy from being approved, and what readers of a package will look for in vain."""
    yield from (f"will not be approved: {lack}" for lack in find_unsaid(audience, about, columns))
    if about is not None and (lacking := about.list_lacking()):
        yield f"about says nothing of {', '.join(lacking)}: readers look for that"
    if coded := [name for name, column in columns.items() if isinstance(column, LabelledEntries) and _has_bare_codes(column)]:
        yield (
            f"entries of {name_some(coded)} are numbers and have no labels: where they are codes, readers cannot know what they "
            "mean"
        )


def _has_bare_codes(column: LabelledEntries) -> bool:
    """Return whether listed entries are numbers that measure nothing, and none of them has a label."""
    entries = column.listed_entries
    return bool(entries) and not column.labels and column.unit is None and all(_CODE.fullmatch(entry) for entry in entries)


# Statements of the people responsible for a release, for the papers that an officer files: purpose, law, who may have the data
# and do what with them, which risk is left and who accepted it. Nothing is inferred, and no released value depends on it; it is
# approved with the policy, and is not published.


class Assessment(Frozen):
    """The statements of a site, each as free text; the papers show 'not stated' for missing ones."""

    purpose: Annotated[Words | None, Option(hint="Say what the release is for.")] = None
    lawful_basis: Annotated[Words | None, Option(hint="Say on which law the processing stands.")] = None
    necessity: Annotated[Words | None, Option(hint="Say why less would not do.")] = None
    collection: Annotated[
        Words | None, Option(hint="Say how the records were collected, and where else they lie or travelled.")
    ] = None
    environment: Annotated[
        Words | None, Option(hint="Say where the confidential records lie, who has access, and how they are guarded.")
    ] = None
    bias: Annotated[
        Words | None, Option(hint="Say whom the records or the figures may serve worse, and what is done about it.")
    ] = None
    recipients_could: Annotated[Words | None, Option(hint="Say what a recipient may have, know and do.")] = None
    controls: Annotated[
        Words | None, Option(hint="Say what binds recipients: contract, access, training, or that nothing does.")
    ] = None
    consulted: Annotated[Words | None, Option(hint="Say who was asked, and what they answered.")] = None
    residual_risk: Annotated[Words | None, Option(hint="Say which risk is left, and why it is acceptable.")] = None
    decision: Annotated[Words | None, Option(hint="Say what was decided, by whom, and until when.")] = None

    def describe(self) -> str:
        """Return what the site states and what it does not, on one line."""
        stated = [name for name in type(self).model_fields if getattr(self, name) is not None]
        unstated = [name for name in type(self).model_fields if name not in stated]
        states = f"states {', '.join(stated) or 'nothing'}"
        return f"{states}; the papers will say 'not stated' of {', '.join(unstated)}" if unstated else states
