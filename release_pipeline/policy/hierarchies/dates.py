"""Hierarchies of dates, which become periods."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field, model_validator

from release_pipeline.policy.declared import Frozen
from release_pipeline.policy.hierarchies.common import ALL, MAX_ROWS, Row
from release_pipeline.policy.readings import RuleReading
from release_pipeline.policy.scalars import Day
from release_pipeline.privacy.figures import join_names
from release_pipeline.sentences import POLICY

Period: TypeAlias = Literal["day", "month", "quarter", "year", "decade"]
PERIODS: tuple[Period, ...] = get_args(Period)


def _coarser(periods: tuple[Period, ...]) -> tuple[Period, ...]:
    places = [PERIODS.index(period) for period in periods]
    if places[0] != 0 or any(later <= earlier for earlier, later in pairwise(places)):
        raise ValueError(f"begin with day and get coarser: {', '.join(PERIODS)}")
    return periods


class Dates(Frozen):
    """Dates (2020-03-05) between two days, and the periods that they become."""

    dates: Annotated[tuple[Period, ...], Field(min_length=1), AfterValidator(_coarser)]
    first: Day
    last: Day

    @model_validator(mode="after")
    def _in_order(self) -> Dates:
        if self.first >= self.last:
            raise ValueError("the first day must come before the last")
        return self

    @property
    def levels(self) -> int:
        """How many levels, the days themselves included."""
        return len(self.dates) + 1

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """None: its labels are made by rule."""
        return ()

    @property
    def words(self) -> str:
        """The hierarchy for a person."""
        return POLICY("hierarchy.dates", first=self.first, last=self.last, periods=join_names(self._list_periods(), "then"))

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        return (*self._list_periods(), ALL)

    def _list_periods(self) -> list[str]:
        return [POLICY.read_section("every")[period] for period in self.dates]

    def covers(self, entry: str) -> bool:
        """Whether an entry is such a date."""
        try:
            is_day = re.fullmatch(_PERIOD_PATTERN["day"], entry) is not None and bool(date.fromisoformat(entry))
        except ValueError:
            return False
        return is_day and self.first.isoformat() <= entry <= self.last.isoformat()

    def labels_of(self, entries: Sequence[str], missing: str | None) -> list[tuple[str, ...]]:
        """A row for each of these entries."""
        return [(*(entry if entry == missing else _period(period, entry) for period in self.dates), ALL) for entry in entries]

    def may_release(self, label: str, missing: str | None) -> bool:
        """Whether a released column may have this label."""
        if label in (ALL, missing):
            return True
        first, last = self.first.isoformat(), self.last.isoformat()
        return any(
            re.fullmatch(_PERIOD_PATTERN[period], label) is not None and _period(period, first) <= label <= _period(period, last)
            for period in self.dates
        )

    def reading(self, missing: str | None) -> RuleReading:
        """How the source's column is read."""
        return RuleReading(covers=self.covers, filled=missing)

    @property
    def most_values(self) -> int:
        """How many days there are."""
        return (self.last - self.first).days + 1

    def list_rows(self) -> list[Row] | None:
        """Every day with its label on each level; None where they are too many to list."""
        if self.most_values > MAX_ROWS:
            return None
        days = (self.first + timedelta(days=number) for number in range(self.most_values))
        return self.labels_of([day.isoformat() for day in days], None)

    def examples(self, most: int) -> list[Any]:
        """One day."""
        return [self.first.isoformat()]


_PERIOD_PATTERN = {
    "day": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "month": r"[0-9]{4}-[0-9]{2}",
    "quarter": r"[0-9]{4}-Q[1-4]",
    "year": r"[0-9]{4}",
    "decade": r"[0-9]{3}0s",
}


def _period(period: str, day: str) -> str:
    match period:
        case "month":
            return day[:7]
        case "quarter":
            return f"{day[:4]}-Q{(int(day[5:7]) + 2) // 3}"
        case "year":
            return day[:4]
        case "decade":
            return f"{day[:3]}0s"
        case _:
            return day
