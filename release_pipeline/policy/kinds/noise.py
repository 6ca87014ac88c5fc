"""Columns of numbers, released masked by the method of the policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.kinds.base import ReleasedAs, ReleasedRole
from release_pipeline.policy.kinds.dates import Dated
from release_pipeline.policy.kinds.missing import BLANK, CodedColumn, number_of_code
from release_pipeline.policy.readings import NumberReading
from release_pipeline.policy.scalars import Domain, Exact, Outside, Step, Why, ascending, unique
from release_pipeline.policy.text import Path, Problem
from release_pipeline.privacy import Grid
from release_pipeline.privacy.by_value import usual_centre
from release_pipeline.privacy.dates import DATE, Clock, write_span
from release_pipeline.sentences import POLICY

MOST_ATOMS = 100  # of one column


class Fill(Frozen):
    """Missing numbers become this one."""

    fill: Exact


@lru_cache(maxsize=4096)
def _declare_grid(domain: tuple[Decimal, Decimal], step: Decimal) -> Grid:
    """A declared grid, which is asked for in every stage of every column."""
    return Grid.declare(domain, step)


_NO_ATOMS = "atoms are for methods that work column by column: {}."


class NoiseColumn(CodedColumn):
    """A number, released masked; with `do: synthesise` nobody's, made of noisy counts.

    Domain, grid and what happens outside are declared, never learned from data. `atoms`: values that readers count, which
    consistency does not move. `dated`: its numbers stand for dates or times (`kinds.dates`)."""

    missing_form: ClassVar[type[Frozen]] = Fill

    do: Literal["noise", "synthesise"]
    role: ReleasedRole
    domain: Domain
    grid: Step
    outside: Outside
    why: Why
    missing: Literal["fail", "keep"] | Fill = "fail"
    atoms: Annotated[
        tuple[Exact, ...],
        AfterValidator(unique),
        AfterValidator(ascending),
        Option(
            hint="List values of the grid that readers count, like [0].",
            not_for={
                "mdav": _NO_ATOMS.format("the means of {method} are of clusters of all columns together, and stay as they are"),
                "vectors": _NO_ATOMS.format(
                    "{method} restores no order that could move them, and its clusters mix them with other values"
                ),
                "classes": _NO_ATOMS.format("{method} restores no order that could move them, and has noise on every record"),
            },
            instead="Remove them, or use dp-cdf, idp-cbls, idp-ls or dp-um.",
        ),
    ] = ()
    dated: Dated | None = None

    @property
    def clock(self) -> Clock | None:
        """The rule by which its numbers are moments; None where they are numbers."""
        return None if self.dated is None else self.dated.clock

    def say(self, value: Decimal | Fraction | float) -> str:
        """One of its values, as people write it."""
        if self.clock is not None:
            return self.clock.show(float(value))
        exact = value if isinstance(value, Decimal) else Fraction(value)
        return decimal_text(exact if isinstance(exact, Decimal) else Decimal(exact.numerator) / Decimal(exact.denominator))

    def say_units(self, units: int) -> str:
        """The value at a point of its grid."""
        grid = self.exact_grid
        value = grid.lo + units * grid.step
        return self.say(value) if self.clock is not None else format(Decimal(value.numerator) / Decimal(value.denominator), "f")

    @property
    def domain_texts(self) -> tuple[str, str]:
        """The ends of its domain, as people write them."""
        low, high = ((format(end, "f") if self.clock is None else self.say(end)) for end in self.domain)
        return low, high

    @property
    def grid_text(self) -> str:
        """Its step, likewise."""
        return format(self.grid, "f") if self.dated is None else write_span(int(self.grid), self.dated.unit)

    @property
    def noise_unit(self) -> str:
        """What differences of its values are counted in, where that needs to be said."""
        return "" if self.dated is None else POLICY.read_section("unit")[self.dated.unit]

    @property
    def exact_grid(self) -> Grid:
        """The grid of this column."""
        return _declare_grid(self.domain, self.grid)

    @property
    def coded_grid(self) -> Grid:
        """The same, and behind its upper end a point for every reason why a record has no value."""
        grid = self.exact_grid
        return dataclasses.replace(grid, width=grid.width + len(self.reasons)) if self.reasons else grid

    @property
    def reason_points(self) -> tuple[float, ...]:
        """The points that stand for the reasons within the pipeline."""
        if not self.reasons:
            return ()
        width = self.exact_grid.width
        units = np.arange(width + 1, width + 1 + len(self.reasons), dtype=np.float64)
        return tuple(self.coded_grid.restore(units).tolist())

    def find_reasons(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The place of each number's reason, -1 for one that is a value."""
        if not self.reasons:
            return np.full(len(numbers), -1)
        beyond = self.coded_grid.quantise(numbers) - self.exact_grid.width - 1
        return np.where((numbers > float(self.domain[1])) & (beyond >= 0), beyond, -1)

    def _lies_within(self, code: str) -> bool:
        """Whether a code is a number that the domain has."""
        number = self._read_code(code)
        return isinstance(number, Decimal) and self.domain[0] <= number <= self.domain[1]

    @property
    def exact_atoms(self) -> tuple[int, ...]:
        """Its atoms in units of the grid."""
        return self.exact_grid.units_of(self.atoms)

    @property
    def exact_centre(self) -> int:
        """Where cells are finest, in units of the grid: at 0 or next to it, or in the middle of dates."""
        grid = self.exact_grid
        return grid.width // 2 if self.dated is not None else usual_centre(grid)  # no date is what 0 is among numbers

    @property
    def fill(self) -> Decimal | None:
        """What missing numbers become, if one may be missing."""
        return self.missing.fill if isinstance(self.missing, Fill) else None

    @property
    def reading(self) -> NumberReading:
        """How the source's column is read."""
        low, high = self.domain
        points = dict(zip(self.reasons, self.reason_points, strict=True)) if self.reasons else {}
        return NumberReading(
            low=low,
            high=high,
            step=self.grid,
            outside=self.outside,
            fill=self.fill,
            codes=tuple((self._read_code(code), points[reason]) for code, reason in self.codes.items()),
            blank=points[BLANK] if self.keeps_blanks else None,
            clock=self.clock,
        )

    def _read_code(self, code: str) -> Decimal | str:
        """Codes among dates are compared as entries."""
        return number_of_code(code) if self.clock is None else code

    @property
    def released_as(self) -> ReleasedAs:
        """The type of the released column."""
        if self.clock is None:
            return "number"
        return "date" if self.clock.type == DATE else "moment"

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        low, high = self.domain_texts
        reasons = f"; without a value: {', '.join(self.reasons)}" if self.reasons else ""
        if within := [code for code in self.codes if self._lies_within(code)]:
            reasons += f" (also where the domain has the number: {', '.join(within)})"
        words = f"domain {low} to {high} by {self.grid_text}, {self.outside} outside{reasons}; {self.why}"
        return f"{mask}; {words}" if mask else words

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        try:
            grid = self.exact_grid
        except ReleasePipelineError as error:
            yield (*here, "grid"), error.what, error.remedy
            return
        heaps = {atom for atom in self.atoms if atom in [self._read_code(code) for code in self.codes]}
        if heaps:
            what = f"{', '.join(format(atom, 'f') for atom in sorted(heaps))}: an atom is a value, and a code stands for none."
            yield (*here, "codes"), what, "Leave it out of one."
        if self.fill is not None and not grid.lo <= self.fill <= grid.hi:
            yield (*here, "missing"), "the fill lies outside the domain.", "Choose a number inside it."
        try:
            grid.units_of(self.atoms)
        except ReleasePipelineError as error:
            yield (*here, "atoms"), error.what, error.remedy
        if self.role == "weight" and self.domain[0] < 0:
            yield (*here, "domain"), "a weight is no number below 0.", "Begin the domain at 0 or above."
        if self.clock is not None and self.role == "weight":
            yield (*here, "role"), "a weight is a number, and no date.", "Give it another role."
        if len(self.atoms) > MOST_ATOMS:
            what = f"there are {len(self.atoms)} atoms, and a column has {MOST_ATOMS} at the most."
            yield (*here, "atoms"), what, "Name those that readers count."
