"""The common parts of all hierarchies, and hierarchies of numbers and dates."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, Field, model_validator

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.basis.figures import join_names
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.policy.values.periods import PATTERN, NumberReading, RuleReading
from release_pipeline.policy.values.scalars import Day, Domain, Exact, Frozen, Outside, Step
from release_pipeline.sentences import FIGURES, POLICY

ALL = "*"  # the label of everything
MAX_ROWS = 50_000
Read: TypeAlias = Callable[[str], str]  # the text of a file that a policy names
Row: TypeAlias = tuple[str, ...]  # a value, and its label on every further level


def as_value_error(error: ReleasePipelineError) -> ValueError:
    """Return the error as pydantic takes it from a validator."""
    return ValueError(f"{error.what.rstrip('.')}{f' ({error.remedy})' if error.remedy else ''}")


def entry_text(entry: Any) -> str:
    """Return a value or label as a text; anything else is refused."""
    if isinstance(entry, bool):
        return "true" if entry else "false"
    if not isinstance(entry, str | int | Decimal):
        raise InvalidArgument("values and labels are texts or numbers; one is empty, a list or a mapping.")
    text = decimal_text(entry) if isinstance(entry, Decimal) else str(entry)
    if not text.isprintable():
        raise InvalidArgument("a value or label has a character that cannot be printed.", remedy="Write it without.")
    return text


class MadeLabels(Frozen):
    """A hierarchy whose labels follow from a rule: none is declared. The last level of all is `*`."""

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """Return no texts: a rule makes its labels."""
        return ()


# Hierarchies of numbers on a declared grid, which become intervals.


MAX_INTERVALS = 1_000_000
SHOWN_CUTS = 8  # cuts of a list that a description shows


class Intervals(MadeLabels):
    """Numbers on a declared grid. Level 0 is the number; every further level cuts the domain into intervals: of equal width from
    its lower end, or between the numbers of a list, which begin the intervals after the first."""

    intervals: tuple[Annotated[Exact, Field(gt=0)] | tuple[Exact, ...], ...] | None = None
    domain: Domain
    grid: Step
    outside: Outside

    @model_validator(mode="after")
    def _nested(self) -> Intervals:
        try:
            _ = self.exact_grid
        except ReleasePipelineError as error:
            raise as_value_error(error) from None
        finer: npt.NDArray[np.int64] | None = None
        for number, starts in enumerate(self._starts(), start=1):
            if finer is not None and not np.isin(starts, finer).all():
                raise ValueError(
                    f"the intervals of level {number} do not consist of whole ones of level {number - 1}: each must begin where "
                    f"one of level {number - 1} begins"
                )
            finer = starts
        return self

    @property
    def exact_grid(self) -> Grid:
        """The grid of the numbers."""
        return Grid.declare(self.domain, self.grid)

    @property
    def most_values(self) -> int:
        """Return how many numbers the grid has."""
        return self.exact_grid.width + 1

    @property
    def levels(self) -> int:
        """Return the number of levels; two without intervals: the number, and everything."""
        return 2 + len(self.intervals or ())

    def describe(self) -> str:
        """Return a description of the hierarchy."""
        low, high, grid = (decimal_text(number) for number in (*self.domain, self.grid))
        outside = POLICY.read_section("outside")[self.outside]
        if not self.intervals:
            return POLICY("hierarchy.intervals", low=low, high=high, grid=grid, outside=outside)
        cuts = join_names(map(_say_cuts, self.intervals), "then")
        return POLICY("hierarchy.intervals_cut", low=low, high=high, grid=grid, cuts=cuts, outside=outside)

    @property
    def level_words(self) -> tuple[str, ...]:
        """Return the name of each level."""
        return (*map(_say_level, (self.grid, *(self.intervals or ()))), ALL)

    def label_units(self, units: Sequence[int]) -> list[tuple[str, ...]]:
        """Return a row of labels for each of these numbers in grid units."""
        texts = [[self.show(unit, unit) for unit in units]]
        for starts in self._starts():
            texts.append([self.show(*_interval_of(unit, starts, self.exact_grid.width)) for unit in units])
        return list(zip(*texts, [ALL] * len(units), strict=True))

    def show(self, low: int, high: int) -> str:
        """Return a label for the numbers from the first to the last of these grid units, or for one number if they are equal.

        `20-24`, and with a sign `-5 to -1`.
        """
        ends = [decimal_text(self.domain[0] + unit * self.grid) for unit in (low, high)]
        if ends[0] == ends[1]:
            return ends[0]
        return f"{ends[0]}{' to ' if any(end.startswith('-') for end in ends) else '-'}{ends[1]}"

    def may_release(self, label: str) -> bool:
        """Return whether a released column may have this label."""
        number = r"-?[0-9]+(?:\.[0-9]+)?"
        if label == ALL:
            return True
        match = re.fullmatch(rf"({number})(?:(?:-| to )({number}))?", label)
        if match is None:
            return False
        low, high = ((Decimal(end) - self.domain[0]) / self.grid for end in (match[1], match[2] or match[1]))
        if low != int(low) or high != int(high) or not 0 <= low <= high <= self.exact_grid.width:
            return False
        ends, width = (int(low), int(high)), self.exact_grid.width
        return label == self.show(*ends) and (
            self.intervals is None
            or low == high
            or any(_interval_of(ends[0], starts, width) == ends for starts in self._starts())
        )

    def _starts(self) -> list[npt.NDArray[np.int64]]:
        """Return where the intervals of each level begin, in grid units."""
        grid, starts = self.exact_grid, list[npt.NDArray[np.int64]]()
        for part in self.intervals or ():
            if isinstance(part, tuple):
                steps = [(Decimal(cut) - self.domain[0]) / self.grid for cut in part]
                if not part or any(step != int(step) or not 0 < step <= grid.width for step in steps):
                    raise ValueError("intervals begin at numbers of the grid inside the domain")
                if any(later <= earlier for earlier, later in pairwise(steps)):
                    raise ValueError("the numbers at which intervals begin must ascend")
                starts.append(np.array([0, *(int(step) for step in steps)], dtype=np.int64))
                continue
            width = part / self.grid
            if width != int(width):
                raise ValueError(f"the width {decimal_text(part)} is not a whole number of grid steps")
            if width > grid.width:
                raise ValueError(f"the width {decimal_text(part)} takes in the whole domain, as * does")
            if grid.width // int(width) > MAX_INTERVALS:
                raise ValueError(f"there are more than {MAX_INTERVALS:,} intervals")
            starts.append(np.arange(0, grid.width + 1, int(width), dtype=np.int64))
        return starts

    def reading(self, missing: str | None) -> NumberReading:
        """Return how the source's column is read."""
        low, high = self.domain
        return NumberReading(low=low, high=high, step=self.grid, outside=self.outside, keeps_missing=missing is not None)

    def list_rows(self) -> list[Row] | None:
        """Return every number with its label on each level; None if they are too many to list."""
        width = self.exact_grid.width
        return self.label_units(range(width + 1)) if width < MAX_ROWS else None

    def examples(self, most: int) -> list[Any]:
        """Return numbers from all over the domain."""
        units = np.unique(np.linspace(0, self.exact_grid.width, most, dtype=np.int64))
        return self.exact_grid.restore(units.astype(np.float64)).tolist()


def _interval_of(unit: int, starts: npt.NDArray[np.int64], width: int) -> tuple[int, int]:
    """Return the first and the last grid unit of the interval that contains a number; the last interval ends with the domain."""
    number = bisect_right(starts, unit) - 1
    return int(starts[number]), int(starts[number + 1]) - 1 if number + 1 < len(starts) else width


def _say_cuts(part: Decimal | tuple[Decimal, ...]) -> str:
    if not isinstance(part, tuple):
        return _say_level(part)
    edges = " | ".join(decimal_text(edge) for edge in part[:SHOWN_CUTS])
    more = len(part) - SHOWN_CUTS
    return POLICY("hierarchy.at", edges=FIGURES("list.more", names=edges, more=more) if more > 0 else edges)


def _say_level(part: Decimal | tuple[Decimal, ...]) -> str:
    if isinstance(part, tuple):
        return POLICY("hierarchy.intervals_level", count=len(part) + 1)
    return POLICY("hierarchy.by", step=decimal_text(part))


# Hierarchies of dates, which become periods.


Period: TypeAlias = Literal["day", "month", "quarter", "year", "decade"]
PERIODS: tuple[Period, ...] = get_args(Period)


def _coarser(periods: tuple[Period, ...]) -> tuple[Period, ...]:
    numbers = [PERIODS.index(period) for period in periods]
    if numbers[0] != 0 or any(later <= earlier for earlier, later in pairwise(numbers)):
        raise ValueError(f"begin with day and get coarser: {', '.join(PERIODS)}")
    return periods


class Dates(MadeLabels):
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
        """Return the number of levels, including the days themselves."""
        return len(self.dates) + 1

    def describe(self) -> str:
        """Return a description of the hierarchy."""
        return POLICY("hierarchy.dates", first=self.first, last=self.last, periods=join_names(self._list_periods(), "then"))

    @property
    def level_words(self) -> tuple[str, ...]:
        """Return the name of each level."""
        return (*self._list_periods(), ALL)

    def _list_periods(self) -> list[str]:
        return [POLICY.read_section("every")[period] for period in self.dates]

    def covers(self, entry: str) -> bool:
        """Return whether an entry is a date of this hierarchy."""
        try:
            is_day = re.fullmatch(_PERIOD_PATTERN["day"], entry) is not None and bool(date.fromisoformat(entry))
        except ValueError:
            return False
        return is_day and self.first.isoformat() <= entry <= self.last.isoformat()

    def labels_of(self, entries: Sequence[str]) -> list[tuple[str, ...]]:
        """Return a row of labels for each of these entries."""
        return [(*(_period(period, entry) for period in self.dates), ALL) for entry in entries]

    def may_release(self, label: str) -> bool:
        """Return whether a released column may have this label."""
        first, last = self.first.isoformat(), self.last.isoformat()
        return label == ALL or any(
            re.fullmatch(_PERIOD_PATTERN[period], label) is not None and _period(period, first) <= label <= _period(period, last)
            for period in self.dates
        )

    def reading(self, missing: str | None) -> RuleReading:
        """Return how the source's column is read."""
        return RuleReading(covers=self.covers, filled=missing)

    @property
    def most_values(self) -> int:
        """Return how many days there are."""
        return (self.last - self.first).days + 1

    def list_rows(self) -> list[Row] | None:
        """Return every day with its label on each level; None if they are too many to list."""
        if self.most_values > MAX_ROWS:
            return None
        days = (self.first + timedelta(days=number) for number in range(self.most_values))
        return self.labels_of([day.isoformat() for day in days])

    def examples(self, most: int) -> list[Any]:
        """Return one day."""
        return [self.first.isoformat()]


_PERIOD_PATTERN = {**PATTERN, "decade": r"[0-9]{3}0s"}


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
