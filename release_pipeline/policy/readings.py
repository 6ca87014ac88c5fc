"""How a column of the source is read, counted and checked, whatever is done with it afterwards: as numbers, as entries of a list,
or as entries that a rule covers. A new kind of columns reads in one of these ways, and the stages need not know it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeAlias

from release_pipeline.privacy.dates import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberReading:
    """Numbers on a declared grid. `fill` takes the place of missing ones; with `keeps_missing` they stay missing, for a label
    that they get later; `blank` is the point that stands for them; with none of these there may be none. `codes`: entries that
    are no value, a number or a text, with the points that stand for them. `clock`: the entries are dates or times, and
    these numbers count its units."""

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
        """Whether nothing may be missing."""
        return self.fill is None and not self.keeps_missing and self.blank is None

    def can_read(self, kind: str) -> bool:
        """Whether a column of the source of this kind may hold such entries: text, number, or the name of a type."""
        is_time = kind == "DATE" or kind.startswith("TIMESTAMP")
        return kind == "text" or (kind == "number" if self.clock is None else is_time)

    @property
    def has_points(self) -> bool:
        """Whether points beyond the domain stand for what is no value."""
        return bool(self.codes) or self.blank is not None

    @property
    def coded_numbers(self) -> dict[float, float]:
        """Numbers that are no value, with the points that stand for them."""
        return {float(code): point for code, point in self.codes if isinstance(code, Decimal)}

    @property
    def coded_texts(self) -> dict[str, float]:
        """Texts that are no value, likewise."""
        return {code: point for code, point in self.codes if isinstance(code, str)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListReading:
    """Entries that are listed, whole `integers` or texts; `filled` takes the place of missing ones, or else there may be none.
    `stand_ins`: entries that are no whole numbers, with those that stand for them."""

    values: tuple[str, ...]
    filled: str | None
    integers: bool
    stand_ins: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """Entries that a rule covers, and `filled` in the place of missing ones, or else there may be none. `only_one`: whether it
    covers one alone. `codes`: entries that are no value, with what stands for them."""

    covers: Callable[[str], bool]
    filled: str | None
    only_one: bool = False
    codes: Mapping[str, str] = field(default_factory=dict[str, str])


Reading: TypeAlias = NumberReading | ListReading | RuleReading
