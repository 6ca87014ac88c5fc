"""The single values of a policy file, how its options are declared, and when a timetable fires.

Everything about an option is in its annotation, and one rule decides which options the canonical form leaves out.
"""

from __future__ import annotations

import re
import unicodedata
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    StrictStr,
    ValidationInfo,
    model_serializer,
)

from release_pipeline.mechanisms import Epsilon
from release_pipeline.policy.values.formats import decimal_text


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """The properties of an option besides its type, its default and its docstring.

    `hint`: the message if the option is missing or empty; `allowed`: the allowed values, if a list of words is not enough.
    `not_for`: why it is refused with the methods of a family, by the family, with `{method}` for the method's name; `instead`:
    what to do then.
    """

    hint: str = ""
    allowed: str = ""
    not_for: Mapping[str, str] = field(default_factory=dict[str, str])
    instead: str = "Remove it."


class Frozen(BaseModel):
    """A part of a policy: it is immutable, and allows no other keys.

    The canonical form, from which a policy's hash is computed, has every option except empty ones (none, no entries). So an
    option that a later version adds changes no hash if it is empty by default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    @model_serializer(mode="wrap")
    def _leave_out(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the canonical form of this part."""
        return {name: value for name, value in dump(self).items() if value not in (None, [], (), {})}


def option_of(model: type[BaseModel], name: str) -> Option:
    """Return the declared properties of an option; empty ones if it has none, or is not an option of this part."""
    info = model.model_fields.get(name)
    return next((part for part in info.metadata if isinstance(part, Option)), Option()) if info else Option()


def find_refused(part: BaseModel, family: str) -> dict[str, Option]:
    """Return the options of a part that differ from their default, and are refused with the methods of this family."""
    return {
        name: option
        for name, info in type(part).model_fields.items()
        if family in (option := option_of(type(part), name)).not_for
        and getattr(part, name) not in (info.get_default(call_default_factory=True), (), {})
    }


# When a timetable fires: cron expressions of five fields, in UTC.
#
# Narrower than the cron of Dagster on purpose, so that every timetable accepted here fires there at the same times: no seconds,
# nicknames, `L`, `W`, `#` or `?`; no range that runs backwards or names one value (there `5-5` means every value); no step that
# only reaches its first value.


EXAMPLE = 'like "0 6 1 * *" = at 06:00 UTC on the first of each month'
_LONGEST_MONTH = {1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"(?:\*|(?P<first>[0-9a-z]+)(?:-(?P<last>[0-9a-z]+))?)(?:/(?P<step>[0-9]{1,4}))?")
_NUMBER = re.compile(r"[0-9]{1,4}")
_LONGEST_QUOTE = 40


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: its allowed numbers, their description, and the names that some of them have."""

    name: str
    low: int
    high: int
    takes: str
    names: Mapping[str, int] = field(default_factory=dict[str, int])

    def read(self, text: str) -> frozenset[int]:
        """Return the numbers that `text` names. Raises `ValueError` with its first fault."""
        return frozenset(number for item in text.split(",") for number in self._read_item(item))

    def _read_item(self, item: str) -> range:
        match = _ITEM.fullmatch(item)
        if match is None:
            raise self._refusal(item, "cannot be read")
        first, last, step = match["first"], match["last"], match["step"]
        if first is None:
            low, high = self.low, self.high
        else:
            low = self._read_number(first, item)
            if last is None and step is None:
                return range(low, low + 1)
            if last is None:
                raise self._refusal(item, f"is a step without an end, unlike {first}-{self.high}/{step}")
            high = self._read_number(last, item)
        if low == high:
            raise self._refusal(item, f"is a range of one, which is written {first}")
        if low > high:
            raise self._refusal(item, "is a range that runs backwards")
        if step is not None and not 1 <= int(step) <= high - low:
            raise self._refusal(item, f"has a step that is not between 1 and {high - low}")
        return range(low, high + 1, int(step or 1))

    def _read_number(self, text: str, item: str) -> int:
        number = int(text) if _NUMBER.fullmatch(text) else self.names.get(text)
        if number is None:
            raise self._refusal(item, "cannot be read")
        if not self.low <= number <= self.high:
            raise self._refusal(item, "is out of range")
        return number

    def _refusal(self, item: str, why: str) -> ValueError:
        return ValueError(
            f"the {self.name} '{item[:_LONGEST_QUOTE]}' {why}: this field takes {self.takes}, or *, lists (1,3), ranges (1-5) "
            f"and steps (*/2, 1-5/2), {EXAMPLE}"
        )


_FIELDS = (
    _Field("minute", 0, 59, "0 to 59"),
    _Field("hour", 0, 23, "0 to 23"),
    _Field("day of month", 1, 31, "1 to 31"),
    _Field("month", 1, 12, "1 to 12 or jan to dec", {name: i for i, name in enumerate(_MONTHS, 1)}),
    _Field(
        "day of week",
        0,
        7,
        "0 to 7 or sun to sat (sun is 0; at the end of a range Sunday is 7)",
        {name: i for i, name in enumerate(_WEEKDAYS)},
    ),
)


@dataclass(frozen=True, slots=True)
class Cron:
    """A timetable: the minutes, in UTC, that fit all of its fields.

    `days` are those of the month, `weekdays` count from 0 (Sunday); if `either_day`, one of the two is enough.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    @classmethod
    def parse(cls, text: str) -> Cron:
        """Return the timetable of `text`, which must fire repeatedly. Raises `ValueError` with a sentence for a steward."""
        parts = text.lower().split()
        if len(parts) != len(_FIELDS):
            names = ", ".join(field.name for field in _FIELDS)
            raise ValueError(f"a timetable has five fields ({names}) and this has {len(parts)}, {EXAMPLE}")
        minutes, hours, days, months, sundays_twice = (field.read(part) for field, part in zip(_FIELDS, parts, strict=True))
        weekdays = frozenset(day % 7 for day in sundays_twice)
        either_day = _is_restricted(parts[2], len(days) == 31, parts[4]) and _is_restricted(
            parts[4], len(weekdays) == 7, parts[2]
        )
        if min(days) > max(_LONGEST_MONTH[month] for month in months):
            so = "only its days of week could; its day of month must then be *" if either_day else "it never fires"
            day, month = (f"'{part[:_LONGEST_QUOTE]}'" for part in parts[2:4])
            raise ValueError(f"the month {month} has no day of month {day}: {so}, {EXAMPLE}")
        return cls(" ".join(text.split()), tuple(sorted(minutes)), tuple(sorted(hours)), days, months, weekdays, either_day)

    def next_after(self, moment: datetime) -> datetime:
        """Return the first firing later than `moment`, in UTC. Raises `ValueError` for a moment without a time zone."""
        if moment.utcoffset() is None:
            raise ValueError("a moment needs its time zone")
        now = moment.astimezone(UTC)
        if self._fires_on(now.date()):
            for hour in self.hours:
                for minute in self.minutes:
                    if (hour, minute) > (now.hour, now.minute):
                        return _at(now.date(), hour, minute)
        return _at(self._next_day(now.date()), self.hours[0], self.minutes[0])

    def _fires_on(self, day: date) -> bool:
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (by_month or by_week if self.either_day else by_month and by_week)

    def _next_day(self, today: date) -> date:
        """Return the first day of firing after `today`."""
        year, month = today.year, today.month
        while year <= MAXYEAR:
            if month in self.months:
                for number in range(1, monthrange(year, month)[1] + 1):
                    day = date(year, month, number)
                    if day > today and self._fires_on(day):
                        return day
            year, month = (year, month + 1) if month < 12 else (year + 1, 1)
        raise ValueError(f"'{self.text}' fires no more before the end of the year {MAXYEAR}")


def _is_restricted(text: str, is_full: bool, other: str) -> bool:
    """Return whether a field of days restricts them, as Dagster decides it (`croniter`): not if one of its entries is a plain
    star, nor if it names every value while the other field has a star, with or without a step. So `*/2` restricts."""
    return "*" not in text.split(",") and not (is_full and "*" in other)


def _at(day: date, hour: int, minute: int) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)


# The single values of a policy file: numbers, percentages, names and dates, each with its error message.


OURS = "release_pipeline"  # prefix of our columns, which are not columns of the source
LONGEST_REASON = 60
CANONICAL: dict[str, bool] = {"canonical": True}  # the context in which values are read as the canonical form writes them


def canonical_name(name: str) -> str:
    """Return a column name as names are compared: NFC. Two names that differ only beyond that (case, width, spaces) look
    alike."""
    return unicodedata.normalize("NFC", name)


def look_alike_key(name: str) -> str:
    """Return a key that is equal for names that a person could mistake for one another: compatibility forms, case and spaces
    folded."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def _not_ours(name: str) -> str:
    if look_alike_key(name).startswith(OURS):
        raise ValueError(f"names that begin with {OURS} are this software's own")
    return name


def _as_written(value: Any, info: ValidationInfo) -> Any:
    """Return a number of a policy file unchanged; one of the canonical form, where numbers are texts, as the number."""
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
    """Return the values; raises if one is there twice."""
    if len({str(value) for value in values}) != len(values):
        raise ValueError("holds the same entry twice")
    return values


def ascending(values: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
    """Return the numbers in ascending order."""
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


def _cron(value: Any) -> Cron:
    if isinstance(value, Cron):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a text of five fields, like '0 6 1 * *'")
    return Cron.parse(value)


def release_texts(value: Any) -> Any:
    """Return a list of releases as texts, converting whole numbers."""
    if not isinstance(value, list):
        return value
    return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in cast(list[Any], value)]


def period_text(value: Any) -> Any:
    """Return the name of a period as a text, converting a year."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _query(value: str) -> str:
    """Return one question to a database: a text that begins another, or hides the rest, is refused here and by the server."""
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
Code = Annotated[str, BeforeValidator(lambda value: str(_category(value)))]
Reason = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_REASON)]
YesNo = Annotated[Literal["yes", "no"], BeforeValidator(_yes_no)]
Timetable = Annotated[Cron, BeforeValidator(_cron), PlainSerializer(lambda cron: cron.text)]

Domain = Annotated[
    tuple[Exact, Exact], Option(hint="Declare [lower, upper] from what is known of the variable, not from the data.")
]
Step = Annotated[Exact, Option(hint="Declare the step between two values, like 1 or 0.01.")]
Outside = Annotated[Literal["clamp", "fail"], Option(hint="Say clamp or fail for values outside the domain.")]
Why = Annotated[Text, Option(hint="Say in a few words where this comes from.")]
