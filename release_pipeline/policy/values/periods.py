"""Releases by period, and how a column of the source is read.

Releases by period: the names of days, weeks, months, quarters and years, in UTC, as the release column has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal, TypeAlias

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.dates import Clock

Every: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
EXAMPLE: dict[str, str] = {"day": "2026-03-31", "week": "2026-W09", "month": "2026-03", "quarter": "2026-Q1", "year": "2026"}
PATTERN: dict[str, str] = {
    "day": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "week": r"[0-9]{4}-W[0-9]{2}",
    "month": r"[0-9]{4}-[0-9]{2}",
    "quarter": r"[0-9]{4}-Q[1-4]",
    "year": r"[0-9]{4}",
}


def name_period(every: Every, moment: datetime) -> str:
    """Return the period that contains `moment`."""
    day = moment.astimezone(UTC)
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year:04}-W{week:02}"
    if every == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return day.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[every]).zfill(len(EXAMPLE[every]))


def begin_of(every: Every, name: str) -> datetime:
    """Return when the period begins. Raises `InvalidArgument` for a text that names none."""
    if re.fullmatch(PATTERN[every], name) is None:
        raise InvalidArgument(f"'{name}' is not the name of a {every}, like {EXAMPLE[every]}.")
    try:
        if every == "week":
            return datetime.fromisocalendar(int(name[:4]), int(name[6:]), 1).replace(tzinfo=UTC)
        if every == "quarter":
            return datetime(int(name[:4]), 3 * int(name[6:]) - 2, 1, tzinfo=UTC)
        return datetime.fromisoformat({"day": name, "month": f"{name}-01", "year": f"{name}-01-01"}[every]).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidArgument(f"'{name}' is not a {every} that there is.") from None


def end_of(every: Every, name: str) -> datetime:
    """Return the end of the period: the first moment after it."""
    begin = begin_of(every, name)
    if begin.year == MAXYEAR:
        raise InvalidArgument(f"'{name}' is too late for a {every}.")
    if every in ("day", "week"):
        return begin + timedelta(days=1 if every == "day" else 7)
    months = {"month": 1, "quarter": 3, "year": 12}[every]
    year, month = divmod(begin.year * 12 + begin.month - 1 + months, 12)
    return begin.replace(year=year, month=month + 1)


def next_period(every: Every, name: str) -> str:
    """Return the period after `name`."""
    return name_period(every, end_of(every, name))


# How a column of the source is read, counted and checked, independent of later steps: as numbers, as entries of a list, or as
# entries that a rule covers. A new kind of column is read in one of these ways, so the stages need not know it.


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberReading:
    """Numbers on a declared grid. `fill` replaces missing ones; with `keeps_missing` they stay missing, for a label that they get
    later; `blank` is the point that represents them; without these, none may be missing. `codes`: entries that are no value, a
    number or a text, with the points that represent them. `clock`: the entries are dates or times, and these numbers count its
    units."""

    low: Decimal
    high: Decimal
    step: Decimal
    outside: Literal["clamp", "fail"]
    fill: Decimal | None = None
    keeps_missing: bool = False
    codes: tuple[tuple[Decimal | str, float], ...] = ()
    blank: float | None = None
    clock: Clock | None = None

    @property
    def must_have(self) -> bool:
        """Return whether no entry may be missing."""
        return self.fill is None and not self.keeps_missing and self.blank is None

    def can_read(self, kind: str) -> bool:
        """Return whether a column of the source of this kind may hold such entries: text, number, or the name of a type."""
        is_time = kind == "DATE" or kind.startswith("TIMESTAMP")
        return kind == "text" or (kind == "number" if self.clock is None else is_time)

    @property
    def has_points(self) -> bool:
        """Return whether points beyond the domain represent entries without a value."""
        return bool(self.codes) or self.blank is not None

    @property
    def coded_numbers(self) -> dict[float, float]:
        """Return numbers that are no value, with the points that represent them."""
        return {float(code): point for code, point in self.codes if isinstance(code, Decimal)}

    @property
    def coded_texts(self) -> dict[str, float]:
        """Return texts that are no value, with the points that represent them."""
        return {code: point for code, point in self.codes if isinstance(code, str)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReading:
    """Entries that are listed, whole `integers` or texts; `filled` replaces missing ones; without it none may be missing.
    `stand_ins`: entries that are not whole numbers, with the numbers that represent them."""

    values: tuple[str, ...]
    filled: str | None
    integers: bool
    stand_ins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """Entries that a rule covers; `filled` replaces missing ones, and without it none may be missing. `only_one`: whether it
    covers only one entry. `codes`: entries that are no value, with the texts that represent them."""

    covers: Callable[[str], bool]
    filled: str | None
    only_one: bool = False
    codes: Mapping[str, str] = field(default_factory=dict[str, str])


Reading: TypeAlias = NumberReading | ListReading | RuleReading
