"""Hierarchies of numbers on a declared grid, which become intervals."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.declared import Frozen
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.hierarchies.common import ALL, MAX_ROWS, Row, as_value_error
from release_pipeline.policy.readings import NumberReading
from release_pipeline.policy.scalars import Domain, Exact, Outside, Step
from release_pipeline.privacy import Grid
from release_pipeline.privacy.figures import join_names
from release_pipeline.sentences import FIGURES, POLICY

MAX_INTERVALS = 1_000_000
SHOWN_CUTS = 8  # of a list of cuts, in words


class Intervals(Frozen):
    """Numbers on a declared grid. Level 0 is the number; every further level cuts the domain into intervals: of one width from
    its lower end on, or between the numbers of a list, which begin the intervals after the first."""

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
        """How many numbers the grid has."""
        return self.exact_grid.width + 1

    @property
    def levels(self) -> int:
        """How many levels; two without intervals: the number, and everything."""
        return 2 + len(self.intervals or ())

    @property
    def declared_texts(self) -> tuple[str, ...]:
        """None: its labels are made by rule."""
        return ()

    @property
    def words(self) -> str:
        """The hierarchy for a person."""
        low, high, grid = (decimal_text(number) for number in (*self.domain, self.grid))
        outside = POLICY.read_section("outside")[self.outside]
        if not self.intervals:
            return POLICY("hierarchy.intervals", low=low, high=high, grid=grid, outside=outside)
        cuts = join_names(map(_say_cuts, self.intervals), "then")
        return POLICY("hierarchy.intervals_cut", low=low, high=high, grid=grid, cuts=cuts, outside=outside)

    @property
    def level_words(self) -> tuple[str, ...]:
        """Each level in a word or two."""
        return (*map(_say_level, (self.grid, *(self.intervals or ()))), ALL)

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

    def reading(self, missing: str | None) -> NumberReading:
        """How the source's column is read."""
        low, high = self.domain
        return NumberReading(low=low, high=high, step=self.grid, outside=self.outside, keeps_missing=missing is not None)

    def list_rows(self) -> list[Row] | None:
        """Every number with its label on each level; None where they are too many to list."""
        width = self.exact_grid.width
        return self.label_units(range(width + 1)) if width < MAX_ROWS else None

    def examples(self, most: int) -> list[Any]:
        """Numbers all over the domain."""
        places = np.unique(np.linspace(0, self.exact_grid.width, most, dtype=np.int64))
        return self.exact_grid.restore(places.astype(np.float64)).tolist()


def _interval_of(unit: int, starts: npt.NDArray[np.int64], width: int) -> tuple[int, int]:
    """The first and the last grid unit of the interval that a number lies in; the last interval ends with the domain."""
    place = bisect_right(starts, unit) - 1
    return int(starts[place]), int(starts[place + 1]) - 1 if place + 1 < len(starts) else width


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
