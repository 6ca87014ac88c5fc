"""Dates and times as whole numbers, so that they are protected like other numbers: how many days, hours, minutes or seconds a
moment comes after the first one of its domain.

Moments have no time zone: the text is taken literally, and a source with a zone is in UTC. A moment belongs to the unit that
contains it (a day at any of its times), which is a function of that moment only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.figures import say_span

Unit: TypeAlias = Literal["day", "hour", "minute", "second"]
UNITS: tuple[Unit, ...] = get_args(Unit)
DATE, MOMENT = "date", "datetime"  # the types of published columns
_SECONDS: dict[Unit, int] = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


_EPOCH = datetime(1970, 1, 1)
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2})?)?")
_SPAN = re.compile(r"([1-9][0-9]{0,6})\s+(day|hour|minute|second)s?")


@dataclass(frozen=True, slots=True)
class Clock:
    """Whole units from `first` on; a moment is at the beginning of one."""

    first: datetime
    unit: Unit

    @classmethod
    def read(cls, first: str, unit: str) -> Clock:
        """Return the clock that begins with this moment."""
        if unit not in UNITS:
            raise InvalidArgument("a unit of time is day, hour, minute or second.")
        moment = read_moment(first)
        if (moment - _EPOCH) % timedelta(seconds=_SECONDS[unit]):
            raise InvalidArgument(f"it is not at the beginning of {_a(unit)}.", remedy=_beginning(unit))
        return cls(moment, unit)

    @property
    def type(self) -> str:
        """The type of the published column."""
        return DATE if self.unit == "day" else MOMENT

    @property
    def offset(self) -> int:
        """The units from the beginning of 1970 to the first."""
        return (self.first - _EPOCH) // timedelta(seconds=_SECONDS[self.unit])

    def find(self, text: str) -> int:
        """Return how many units a moment comes after the first; one within a unit is refused.

        >>> Clock.read("1990-01-01", "day").find("1990-02-01")
        31
        """
        units, rest = divmod(read_moment(text) - self.first, timedelta(seconds=_SECONDS[self.unit]))
        if rest:
            raise InvalidArgument(f"it is not at the beginning of {_a(self.unit)}.", remedy=_beginning(self.unit))
        return units

    def show(self, units: float | Fraction) -> str:
        """Return the moment so many units after the first, at the nearest whole one, as text; dates beyond the calendar are at
        its end.

        >>> Clock.read("1990-01-01", "day").show(31), Clock.read("1990-01-01", "hour").show(24.4)
        ('1990-02-01', '1990-01-02T00:00:00')
        """
        return self.moment(units).isoformat()[: 10 if self.unit == "day" else None]

    def moment(self, units: float | Fraction) -> datetime:
        """Return that moment as a datetime."""
        try:
            return self.first + timedelta(seconds=_SECONDS[self.unit] * round(units))
        except OverflowError:
            return datetime.max.replace(microsecond=0) if units > 0 else datetime.min

    def count_to(self, moment: datetime) -> float:
        """Return how many units a moment comes after the first, whole or not."""
        return (moment - self.first) / timedelta(seconds=_SECONDS[self.unit])

    def name_span(self, words: str) -> str:
        """Return an amount of time as text, given its number as text."""
        return say_span(words, self.unit)

    def restore(self, units: npt.NDArray[np.float64]) -> npt.NDArray[np.datetime64]:
        """Return the moments so many units after the first, each at the nearest whole one; NaN becomes none."""
        there = np.isfinite(units)
        whole = np.rint(np.where(there, units, 0.0)).astype(np.int64) + self.offset
        moments: npt.NDArray[np.datetime64] = (whole * _SECONDS[self.unit]).astype("datetime64[s]")
        moments[~there] = np.datetime64("NaT")
        return moments.astype("datetime64[D]") if self.unit == "day" else moments

    def count(self, moments: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return how many whole units each moment comes after the first; NaN for none."""
        seconds = moments.astype("datetime64[s]")
        whole = seconds.astype(np.int64) // _SECONDS[self.unit] - self.offset
        return np.where(np.isnat(seconds), np.nan, whole.astype(np.float64))


def read_moment(text: str) -> datetime:
    """Return the moment of a date, or a date with a time, as a policy writes it: ISO 8601 without a zone; anything else is
    refused."""
    try:
        if _WRITTEN.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidArgument("it must be a date like 1990-01-31, or a time like 1990-01-31T09:30, without a zone.")


def looks_like_moment(value: object) -> bool:
    """Return whether a date was meant."""
    return isinstance(value, str) and re.match(r"[0-9]{4}-[0-9]{2}", value) is not None


def read_span(value: object) -> tuple[int, Unit] | None:
    """Return how many units a step of a grid is; None if it is no amount of time.

    >>> read_span("15 minutes"), read_span(1)
    ((15, 'minute'), None)
    """
    match = _SPAN.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else (int(match[1]), next(unit for unit in UNITS if unit == match[2]))


def write_span(number: int, unit: Unit) -> str:
    """Return an amount of time as a policy writes it."""
    return f"{number} {unit}{'' if number == 1 else 's'}"


def _a(unit: Unit) -> str:
    return f"an {unit}" if unit == "hour" else f"a {unit}"


def _beginning(unit: Unit) -> str:
    return "Leave the time out, or use a finer grid." if unit == "day" else f"Name whole {unit}s, or use a finer grid."
