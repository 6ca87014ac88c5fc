"""The single values of a policy file: what a number, a percentage, a name or a date is, each refused in words."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, StrictStr, ValidationInfo

from release_pipeline.policy.cron import Cron
from release_pipeline.policy.declared import Option
from release_pipeline.policy.formats import decimal_text
from release_pipeline.privacy import Epsilon

OURS = "release_pipeline"  # how columns of our own begin, beside those of the source
LONGEST_REASON = 60
CANONICAL: dict[str, bool] = {"canonical": True}  # the context in which values are read as the canonical form writes them


def canonical_name(name: str) -> str:
    """How column names are compared: NFC. Two names that differ only beyond that (case, width, spaces) look alike."""
    return unicodedata.normalize("NFC", name)


def look_alike_key(name: str) -> str:
    """Equal for names that a person could take for one another: compatibility forms, case and spaces folded."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def _not_ours(name: str) -> str:
    if look_alike_key(name).startswith(OURS):
        raise ValueError(f"names that begin with {OURS} are this software's own")
    return name


def _as_written(value: Any, info: ValidationInfo) -> Any:
    """A number of a policy file as it is; one of the canonical form, where numbers are texts, as the number."""
    if info.context != CANONICAL or not isinstance(value, str):
        return value
    try:
        return Decimal(value)
    except InvalidOperation:
        raise ValueError("must be a number") from None


def _number(value: Any, info: ValidationInfo) -> Decimal:
    value = _as_written(value, info)
    if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]+,[0-9]+", value):
        raise ValueError(f"must be a number with a decimal point: {value.replace(',', '.')}")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")
    return Decimal(value)


def _epsilon(value: Any, info: ValidationInfo) -> Epsilon:
    if isinstance(value, Epsilon):
        return value
    epsilon = Epsilon.of(_number(value, info))
    if epsilon.nano == 0:
        raise ValueError("must be above 0")
    return epsilon


def _percent(value: Any, info: ValidationInfo) -> Decimal:
    if info.context == CANONICAL:
        return _number(value, info)
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%", value) if isinstance(value, str) else None
    if match is None or Decimal(match[1]) > 100:
        raise ValueError("must be a percentage from 0% to 100%, like 5%")
    return Decimal(match[1]) / 100


def _yes_no(value: Any) -> Any:
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _days(value: Any, info: ValidationInfo) -> int:
    if info.context == CANONICAL and isinstance(value, int):
        return value
    match = re.fullmatch(r"([1-9][0-9]{0,4})\s+days?", value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("must be a number of days, like 90 days")
    return int(match[1])


def _instant(value: Any) -> datetime:
    try:
        instant = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        instant = None
    try:
        if isinstance(instant, datetime) and instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except OverflowError:
        pass
    raise ValueError("must be a date and time with its zone, like 2027-01-15T09:30Z")


def unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, none of them twice."""
    if len({str(value) for value in values}) != len(values):
        raise ValueError("holds the same entry twice")
    return values


def ascending(values: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    """The numbers in order, however they were listed."""
    return tuple(sorted(values))


def _category(value: Any) -> int | str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return decimal_text(value)
    if not isinstance(value, int | str):
        raise ValueError("must be a list of texts or whole numbers")
    if value == "":
        raise ValueError("must have no empty text: in CSV nobody can tell it from a blank cell")
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("is beyond 64-bit integers; put it in quotes")
    return value


def _code(value: Any) -> str:
    value = _category(value)
    return str(value)


def _cron(value: Any) -> Cron:
    if isinstance(value, Cron):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a text of five fields, like '0 6 1 * *'")
    return Cron.parse(value)


def release_texts(value: Any) -> Any:
    """A list of releases as texts, whole numbers among them."""
    if not isinstance(value, list):
        return value
    return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in cast(list[Any], value)]


def period_text(value: Any) -> Any:
    """The name of a period as a text, a year among them."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _query(value: str) -> str:
    """One question to a database: what begins another, or hides the rest, is refused here and by the server."""
    if ";" in value:
        raise ValueError("must be one statement without any semicolon (in a text, write chr(59))")
    if re.match(r"\s*(select|with|values)\b", value, re.IGNORECASE) is None:
        raise ValueError("must begin with SELECT, WITH or VALUES")
    if "\0" in value:
        raise ValueError("must be text")
    return value


def _date(value: Any) -> date:
    if isinstance(value, date):
        return value
    try:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise ValueError("must be a date like 1990-01-31")


Day = Annotated[date, BeforeValidator(_date), PlainSerializer(lambda day: day.isoformat())]
Exact = Annotated[Decimal, BeforeValidator(_number), PlainSerializer(decimal_text)]
Budget = Annotated[Epsilon, BeforeValidator(_epsilon), PlainSerializer(str)]
Percent = Annotated[Decimal, BeforeValidator(_percent), PlainSerializer(decimal_text)]
Days = Annotated[int, BeforeValidator(_days)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Slug = Annotated[StrictStr, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
Text = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Query = Annotated[StrictStr, Field(min_length=1, max_length=10_000), AfterValidator(_query)]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), AfterValidator(canonical_name), AfterValidator(_not_ours)]
ReleaseName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
ReleaseList = Annotated[tuple[ReleaseName, ...], Field(min_length=1), AfterValidator(unique)]
Category = Annotated[int | str, BeforeValidator(_category)]
Code = Annotated[str, BeforeValidator(_code)]
Reason = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_REASON)]
YesNo = Annotated[Literal["yes", "no"], BeforeValidator(_yes_no)]
Timetable = Annotated[Cron, BeforeValidator(_cron), PlainSerializer(lambda cron: cron.text)]

Domain = Annotated[
    tuple[Exact, Exact], Option(hint="Declare [lower, upper] from what is known of the variable, not from the data.")
]
Step = Annotated[Exact, Option(hint="Declare the step between two values, like 1 or 0.01.")]
Outside = Annotated[Literal["clamp", "fail"], Option(hint="Say clamp or fail for values outside the domain.")]
Why = Annotated[Text, Option(hint="Say in a few words where this comes from.")]
