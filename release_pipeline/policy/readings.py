"""How a column of the source is read, counted and checked, whatever is done with it afterwards: as numbers, as entries of a list,
or as entries that a rule covers. A new kind of columns reads in one of these ways, and the stages need not know it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberReading:
    """Numbers on a declared grid. `fill` takes the place of missing ones; with `keeps_missing` they stay missing, for a label
    that they get later; with neither there may be none."""

    low: Decimal
    high: Decimal
    step: Decimal
    outside: Literal["clamp", "fail"]
    fill: Decimal | None = None
    keeps_missing: bool = False

    @property
    def must_have(self) -> bool:
        """Whether nothing may be missing."""
        return self.fill is None and not self.keeps_missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReading:
    """Entries that are listed, whole `integers` or texts; `filled` takes the place of missing ones, or else there may be none."""

    values: tuple[str, ...]
    filled: str | None
    integers: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """Entries that a rule covers, and `filled` in the place of missing ones, or else there may be none. `only_one`: whether it
    covers one alone."""

    covers: Callable[[str], bool]
    filled: str | None
    only_one: bool = False


Reading: TypeAlias = NumberReading | ListReading | RuleReading
