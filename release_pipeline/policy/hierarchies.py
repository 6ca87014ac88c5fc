"""How a policy declares what a generalised column becomes: listed labels, intervals, prefixes or dates.

Each form says which entries it covers and what they become on every level. The last level of all is `*`, but for listed labels,
which end as they are listed. A category for missing entries stays itself until `*`.
"""

from __future__ import annotations

import csv
import io
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, BeforeValidator, Discriminator, Field, StrictInt, StrictStr, Tag, model_validator

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.policy.scalars import Day, Exact, Frozen, decimal_text
from release_pipeline.privacy import Grid
from release_pipeline.privacy.hierarchy import Hierarchy

ALL = "*"  # the label of everything
MAX_INTERVALS = 1_000_000
MAX_ROWS = 50_000
LONGEST_LABEL = 200
SHOWN_CUTS = 8  # of a list of cuts, in words
Read: TypeAlias = Callable[[str], str]  # the text of a file that a policy names
Period: TypeAlias = Literal["day", "month", "quarter", "year", "decade"]
PERIODS: tuple[Period, ...] = get_args(Period)
_CHARACTERS = {"digits": "[0-9]", "letters": "[A-Za-z]", "digits-and-letters": "[0-9A-Za-z]"}


def _as_value_error(error: ReleasePipelineError) -> ValueError:
    """The same as pydantic takes it from a validator."""
    return ValueError(f"{error.what.rstrip('.')}{f' ({error.remedy})' if error.remedy else ''}")


def _rows(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    rows = cast(Sequence[Any], value)
    return [[_text(entry) for entry in cast(Sequence[Any], row)] if isinstance(row, list | tuple) else row for row in rows]


def _check_rows(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    if any(len(label) > LONGEST_LABEL for row in rows for label in row):
        raise ValueError(f"has a value or label of more than {LONGEST_LABEL} characters")
    try:
        Hierarchy.of(rows)
    except ReleasePipelineError as error:
        raise _as_value_error(error) from None
    if len(rows) > MAX_ROWS:
        raise ValueError(f"lists more than {MAX_ROWS:,} values")
    return rows


class Listed(Frozen):
    """A row for every value: the value, and its label on each level. In the file: `csv`, `groups` or `rows`."""

    rows: Annotated[tuple[tuple[StrictStr, ...], ...], BeforeValidator(_rows), AfterValidator(_check_rows), Field(min_length=1)]

    @property
    def levels(self) -> int:
        """How many levels, the values themselves included."""
        return len(self.rows[0])

    @property
    def values(self) -> tuple[str, ...]:
        """What may occur."""
        return tuple(row[0] for row in self.rows)

    @property
    def words(self) -> str:
        """The hierarchy for a person."""
        return f"{len(self.rows):,} values listed, in {self.levels} levels"

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        counts = [len(set(column)) for column in zip(*self.rows, strict=True)]
        return tuple(ALL if count == 1 and level else f"{count:,} values" for level, count in enumerate(counts))

    def may_release(self, label: str, missing: str | None) -> bool:
        """Whether a released column may have this label."""
        return any(label in row for row in self.rows)


class Intervals(Frozen):
    """Numbers on a declared grid. Level 0 is the number; every further level cuts the domain into intervals: of one width from
    its lower end on, or between the numbers of a list, which begin the intervals after the first."""

    intervals: tuple[Annotated[Exact, Field(gt=0)] | tuple[Exact, ...], ...] | None = None
    domain: tuple[Exact, Exact]
    grid: Exact
    outside: Literal["clamp", "fail"]

    @model_validator(mode="after")
    def _nested(self) -> Intervals:
        try:
            _ = self.exact_grid
        except ReleasePipelineError as error:
            raise _as_value_error(error) from None
        finer: npt.NDArray[np.int64] | None = None
        for number, starts in enumerate(self._starts(), start=1):
            if finer is not None and not np.isin(starts, finer).all():
                raise ValueError(f"the intervals of level {number} do not consist of whole ones of level {number - 1}")
            finer = starts
        return self

    @property
    def exact_grid(self) -> Grid:
        """The grid of the numbers."""
        return Grid.declare(self.domain, self.grid)

    @property
    def levels(self) -> int:
        """How many levels; two without intervals: the number, and everything."""
        return 2 + len(self.intervals or ())

    @property
    def words(self) -> str:
        """The hierarchy for a person."""
        low, high = (decimal_text(bound) for bound in self.domain)
        cut = "".join(f", then {_say_cuts(part)}" for part in self.intervals or ())
        return f"numbers {low} to {high}, rounded to {decimal_text(self.grid)}{cut}, {self.outside} outside"

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        cut = (
            f"{len(part) + 1} intervals" if isinstance(part, tuple) else f"by {decimal_text(part)}"
            for part in self.intervals or ()
        )
        return (f"by {decimal_text(self.grid)}", *cut, ALL)

    def label_units(self, units: Sequence[int]) -> list[tuple[str, ...]]:
        """A row for each of these numbers of grid units."""
        texts = [[self.show(unit, unit) for unit in units]]
        for starts in self._starts():
            texts.append([self.show(*_interval_of(unit, starts, self.exact_grid.width)) for unit in units])
        return list(zip(*texts, [ALL] * len(units), strict=True))

    def show(self, low: int, high: int) -> str:
        """The numbers of these grid units as a label: one, or from the first to the last.

        `20-24`, and with a sign `-5 to -1`.
        """
        ends = [decimal_text(self.domain[0] + unit * self.grid) for unit in (low, high)]
        if ends[0] == ends[1]:
            return ends[0]
        return f"{ends[0]}{' to ' if any(end.startswith('-') for end in ends) else '-'}{ends[1]}"

    def may_release(self, label: str, missing: str | None) -> bool:
        """Whether a released column may have this label."""
        number = r"-?[0-9]+(?:\.[0-9]+)?"
        if label in (ALL, missing):
            return True
        found = re.fullmatch(rf"({number})(?:(?:-| to )({number}))?", label)
        if found is None:
            return False
        low, high = ((Decimal(end) - self.domain[0]) / self.grid for end in (found[1], found[2] or found[1]))
        if low != int(low) or high != int(high) or not 0 <= low <= high <= self.exact_grid.width:
            return False
        ends, width = (int(low), int(high)), self.exact_grid.width
        return label == self.show(*ends) and (
            self.intervals is None
            or low == high
            or any(_interval_of(ends[0], starts, width) == ends for starts in self._starts())
        )

    def _starts(self) -> list[npt.NDArray[np.int64]]:
        """Where the intervals of each level begin, in grid units."""
        grid, found = self.exact_grid, list[npt.NDArray[np.int64]]()
        for part in self.intervals or ():
            if isinstance(part, tuple):
                steps = [(Decimal(cut) - self.domain[0]) / self.grid for cut in part]
                if not part or any(step != int(step) or not 0 < step <= grid.width for step in steps):
                    raise ValueError("intervals begin at numbers of the grid inside the domain")
                if any(later <= earlier for earlier, later in pairwise(steps)):
                    raise ValueError("the numbers at which intervals begin must ascend")
                found.append(np.array([0, *(int(step) for step in steps)], dtype=np.int64))
                continue
            width = part / self.grid
            if width != int(width):
                raise ValueError(f"the width {decimal_text(part)} is not a whole number of grid steps")
            if width > grid.width:
                raise ValueError(f"the width {decimal_text(part)} takes in the whole domain, as * does")
            if grid.width // int(width) > MAX_INTERVALS:
                raise ValueError(f"there are more than {MAX_INTERVALS:,} intervals")
            found.append(np.arange(0, grid.width + 1, int(width), dtype=np.int64))
        return found


def _interval_of(unit: int, starts: npt.NDArray[np.int64], width: int) -> tuple[int, int]:
    """The first and the last grid unit of the interval that a number lies in; the last interval ends with the domain."""
    place = bisect_right(starts, unit) - 1
    return int(starts[place]), int(starts[place + 1]) - 1 if place + 1 < len(starts) else width


def _say_cuts(part: Decimal | tuple[Decimal, ...]) -> str:
    if not isinstance(part, tuple):
        return f"by {decimal_text(part)}"
    told = " | ".join(map(decimal_text, part[:SHOWN_CUTS]))
    return f"at {told}" + (f" and {len(part) - SHOWN_CUTS} more" if len(part) > SHOWN_CUTS else "")


def _shrinking(kept: tuple[int, ...]) -> tuple[int, ...]:
    if any(later >= earlier for earlier, later in pairwise(kept)):
        raise ValueError("the numbers of characters kept must go down, like [5, 3, 2]")
    return kept


class Prefixes(Frozen):
    """Codes of one length, like postal codes: how many of the first characters are kept on each level, the first being all."""

    prefixes: Annotated[tuple[Annotated[StrictInt, Field(ge=1, le=50)], ...], Field(min_length=1), AfterValidator(_shrinking)]
    of: Literal["digits", "letters", "digits-and-letters"]

    @property
    def levels(self) -> int:
        """How many levels, the codes themselves included."""
        return len(self.prefixes) + 1

    @property
    def pattern(self) -> str:
        """What a code looks like."""
        return f"{_CHARACTERS[self.of]}{{{self.prefixes[0]}}}"

    @property
    def words(self) -> str:
        """The hierarchy for a person."""
        kept = ", then ".join(str(count) for count in self.prefixes[1:])
        return f"codes of {self.prefixes[0]} {self.of}" + (f", of which {kept} are kept" if kept else "")

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        return (*(f"{kept} {self.of}" for kept in self.prefixes), ALL)

    def covers(self, entry: str) -> bool:
        """Whether an entry is such a code."""
        return re.fullmatch(self.pattern, entry) is not None

    def labels_of(self, entries: Sequence[str], missing: str | None) -> list[tuple[str, ...]]:
        """A row for each of these entries."""
        length = self.prefixes[0]
        return [
            (*((entry if entry == missing else entry[:kept] + ALL * (length - kept)) for kept in self.prefixes), ALL)
            for entry in entries
        ]

    def may_release(self, label: str, missing: str | None) -> bool:
        """Whether a released column may have this label."""
        if label in (ALL, missing):
            return True
        length, kept = self.prefixes[0], len(label.rstrip(ALL))
        return (
            len(label) == length and kept in self.prefixes and re.fullmatch(_CHARACTERS[self.of] + "+", label[:kept]) is not None
        )


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
    def words(self) -> str:
        """The hierarchy for a person."""
        return f"dates from {self.first} to {self.last}: {', then '.join(self.dates)}"

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        return (*self.dates, ALL)

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


def list_rows(spec: Listed | Intervals | Prefixes | Dates, missing: str | None) -> list[tuple[str, ...]] | None:
    """Every value with its label on each level, for a reader of the release; None where they are too many to list."""
    match spec:
        case Listed():
            return list(spec.rows)
        case Intervals() if spec.exact_grid.width < MAX_ROWS:
            rows = spec.label_units(range(spec.exact_grid.width + 1))
        case Dates() if (spec.last - spec.first).days < MAX_ROWS:
            days = [(spec.first + timedelta(days=number)).isoformat() for number in range((spec.last - spec.first).days + 1)]
            rows = spec.labels_of(days, None)
        case _:
            return None
    return rows if missing is None else [*rows, (*[missing] * (spec.levels - 1), ALL)]


def _form(value: Any) -> str:
    """Which form was meant, by what only it has."""
    if isinstance(value, BaseModel):
        return type(value).__name__.lower()
    keys = set(cast(Mapping[str, Any], value)) if isinstance(value, dict) else set[str]()
    if keys & {"prefixes", "of"}:
        return "prefixes"
    if keys & {"dates", "first", "last"}:
        return "dates"
    return "intervals" if keys & {"intervals", "domain", "grid", "outside"} else "listed"


HierarchySpec: TypeAlias = Annotated[
    Annotated[Listed, Tag("listed")]
    | Annotated[Intervals, Tag("intervals")]
    | Annotated[Prefixes, Tag("prefixes")]
    | Annotated[Dates, Tag("dates")],
    Discriminator(_form),
]
SPECS: dict[str, type[BaseModel]] = {"listed": Listed, "intervals": Intervals, "prefixes": Prefixes, "dates": Dates}
FORMS = (
    "Allowed: {csv: FILE}, {groups: {LABEL: [values]}}, {intervals: [5, 10], domain: [0, 100], grid: 1, outside: clamp}, "
    "{prefixes: [5, 3], of: digits}, {dates: [day, month, year], first: 1900-01-01, last: 2030-12-31}."
)


def known_keys(value: Any) -> list[str]:
    """The keys that may stand in the hierarchy that was meant."""
    form = _form(value)
    return ["csv", "groups", "rows"] if form == "listed" else list(SPECS[form].model_fields)


def expand(value: Any, read: Read) -> Any:
    """A hierarchy as a steward wrote it, its `csv` or `groups` as rows. Raises `ReleasePipelineError` with what is wrong."""
    if not isinstance(value, dict):
        return value
    spec = cast(dict[str, Any], value)
    sources = [key for key in ("csv", "groups", "rows") if key in spec]
    if len(sources) != 1 or sources == ["rows"]:
        if len(sources) > 1:
            raise InvalidArgument(f"{' and '.join(sources)} both list the values.", remedy="Use one of them.")
        return spec
    if sources == ["csv"]:
        if not isinstance(spec["csv"], str):
            raise InvalidArgument("csv must name a file.")
        rows = read_rows(read(spec["csv"]))
    else:
        rows = rows_of_groups(spec["groups"])
    Hierarchy.of(rows)  # what is wrong with them is told where the steward wrote them
    return {"rows": rows, **{key: part for key, part in spec.items() if key != sources[0]}}


def read_rows(text: str) -> list[list[str]]:
    """The rows of a hierarchy's CSV (level0, level1, ...), with commas or semicolons between, without its header."""
    first = text.split("\n", 1)[0]
    try:
        rows = [row for row in csv.reader(io.StringIO(text), delimiter=";" if ";" in first and "," not in first else ",") if row]
    except csv.Error:
        raise InvalidArgument("this is not readable as CSV.") from None
    if not rows or [name.strip().lower() for name in rows[0]] != [f"level{level}" for level in range(len(rows[0]))]:
        raise InvalidArgument("the CSV of a hierarchy begins with the header level0,level1,...", remedy="Add it.")
    return [[_text(entry) for entry in row] for row in rows[1:]]


def rows_of_groups(groups: Any) -> list[list[str]]:
    """Rows from nested groups {LABEL: [values] or {LABEL: ...}}, all of one depth, or from plain values; `*` is the last level.

    >>> rows_of_groups({"vowel": ["a", "e"], "other": ["b"]})
    [['a', 'vowel', '*'], ['e', 'vowel', '*'], ['b', 'other', '*']]
    """
    rows: list[list[str]] = []

    def walk(here: Any, path: list[str]) -> None:
        if isinstance(here, dict) and here:
            for label, below in cast(dict[str, Any], here).items():
                walk(below, [str(label), *path])
        elif isinstance(here, list) and here:
            entries = cast(list[Any], here)
            rows.extend([_text(entry), *path] for entry in entries)
        else:
            raise InvalidArgument("groups are [values], or {LABEL: [values], ...}, or have groups in them.")

    walk(groups, [])
    if len({len(row) for row in rows}) > 1:
        raise InvalidArgument("some groups are nested deeper than others.", remedy="Give every value as many labels.")
    return rows if all(row[-1] == ALL and len(row) > 1 for row in rows) else [[*row, ALL] for row in rows]


def _text(entry: Any) -> str:
    if isinstance(entry, bool):
        return "true" if entry else "false"
    if not isinstance(entry, str | int | Decimal):
        raise InvalidArgument("values and labels are texts or numbers; one is empty, a list or a mapping.")
    text = decimal_text(entry) if isinstance(entry, Decimal) else str(entry)
    if not text.isprintable():
        raise InvalidArgument("a value or label has a character that cannot be printed.", remedy="Write it without.")
    return text
