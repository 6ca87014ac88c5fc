"""When a timetable fires: cron expressions of five fields, in UTC.

Narrower than the cron of Dagster on purpose, so that whatever is accepted here fires there at the same times: no seconds,
nicknames, `L`, `W`, `#` or `?`; no range that runs backwards or names one value (there `5-5` means every value); no step
that only reaches its first value.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, date, datetime

EXAMPLE = 'like "0 6 1 * *" = at 06:00 UTC on the first of each month'
_LONGEST_MONTH = {1: 31, 2: 29, 3: 31, 4: 30, 5: 31, 6: 30, 7: 31, 8: 31, 9: 30, 10: 31, 11: 30, 12: 31}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_ITEM = re.compile(r"(?:\*|(?P<first>[0-9a-z]+)(?:-(?P<last>[0-9a-z]+))?)(?:/(?P<step>[0-9]{1,4}))?")
_NUMBER = re.compile(r"[0-9]{1,4}")
_LONGEST_QUOTE = 40


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five: its admissible numbers, in words too, and the names that some of them have."""

    name: str
    low: int
    high: int
    takes: str
    names: Mapping[str, int] = field(default_factory=dict[str, int])

    def read(self, text: str) -> frozenset[int]:
        """The numbers that `text` names. Raises `ValueError` with the first thing in it that is wrong."""
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

    `days` are those of the month, `weekdays` count from 0, Sunday; if `either_day`, one of the two suffices.
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
        """The timetable of `text`, which fires again and again. Raises `ValueError` in words for a steward."""
        parts = text.lower().split()
        if len(parts) != len(_FIELDS):
            names = ", ".join(one.name for one in _FIELDS)
            raise ValueError(f"a timetable has five fields ({names}) and this has {len(parts)}, {EXAMPLE}")
        minutes, hours, days, months, sundays_twice = (one.read(part) for one, part in zip(_FIELDS, parts, strict=True))
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
        """The first firing later than `moment`, in UTC. Raises `ValueError` for a moment without a time zone."""
        now = _in_utc(moment)
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
        """The first day of firing after `today`."""
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
    """Whether a field of days says which, as Dagster decides it (`croniter`): not if one of its entries is a plain star, nor
    if it names every value while the other field has a star, with or without a step. So `*/2` restricts."""
    return "*" not in text.split(",") and not (is_full and "*" in other)


def _in_utc(moment: datetime) -> datetime:
    if moment.utcoffset() is None:
        raise ValueError("a moment needs its time zone")
    return moment.astimezone(UTC)


def _at(day: date, hour: int, minute: int) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
