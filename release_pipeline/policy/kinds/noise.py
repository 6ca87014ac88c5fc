"""Masked columns, of numbers or of dates and times. Of dates a steward writes `domain: [1990-01-01, 2025-12-31], grid: 1 day`;
within a policy these are whole numbers of units from the first moment of the domain on (`mechanisms.basis.dates`), and `dated`
says which."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, StrictStr

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms import Grid
from release_pipeline.mechanisms.basis.dates import DATE, Clock, Unit, looks_like_moment, read_moment, read_span, write_span
from release_pipeline.mechanisms.by_value import usual_centre
from release_pipeline.policy.kinds.base import BLANK, CodedColumn, ReleasedAs, ReleasedRole, cell_of_reason, number_of_code
from release_pipeline.policy.values.formats import decimal_text
from release_pipeline.policy.values.periods import NumberReading
from release_pipeline.policy.values.scalars import Domain, Exact, Frozen, Option, Outside, Step, Why, ascending, unique
from release_pipeline.policy.values.text import Path, Problem
from release_pipeline.sentences import POLICY

MADE = "dated"  # the option that no steward writes
_SPANS = "Write the step as an amount of time: 1 day, 12 hours, 15 minutes or 1 second."


def _is_moment(text: str) -> str:
    try:
        read_moment(text)
    except InvalidArgument as error:
        raise ValueError(error.what) from None
    return text


class Dated(Frozen):
    """What 0 is in a column of moments, and what a unit is."""

    first: Annotated[StrictStr, AfterValidator(_is_moment)]
    unit: Unit

    @property
    def clock(self) -> Clock:
        """The rule by which numbers are moments."""
        return _read_clock(self.first, self.unit)


@lru_cache(maxsize=1024)
def _read_clock(first: str, unit: Unit) -> Clock:
    return Clock.read(first, unit)


def is_dated(column: Mapping[str, Any]) -> bool:
    """Whether a masked column was meant as one of dates, by what a steward wrote."""
    domain = column.get("domain")
    ends = cast(list[Any], domain) if isinstance(domain, list) else []
    is_meant = MADE in column or read_span(column.get("grid")) is not None or any(map(looks_like_moment, ends))
    return column.get("do") in ("noise", "synthesise") and is_meant


def count_units(column: Mapping[str, Any], here: Path, problems: list[Problem]) -> dict[str, Any] | None:
    """A masked column of dates as one of numbers; None where it cannot be, and why among the problems."""
    if faults := list(_find_faults(column, here)):
        problems += faults
        return None
    (low, high), span = column["domain"], read_span(column["grid"])
    assert span is not None  # noqa: S101  for the type checker
    number, unit = span
    counted, at = {**column, "grid": number}, (*here, "domain")
    try:
        clock = Clock.read(low, unit)
        counted["domain"] = [0, clock.find(high)]
        counted[MADE] = {"first": clock.show(0), "unit": unit}
        at = (*here, "atoms")
        if "atoms" in column:
            counted["atoms"] = _count(column["atoms"], clock)
        at = (*here, "missing")
        if isinstance(column.get("missing"), dict) and "fill" in column["missing"]:
            counted["missing"] = {**column["missing"], "fill": _count(column["missing"]["fill"], clock)}
    except InvalidArgument as error:
        problems.append((at, error.what, error.remedy))
        return None
    return counted


def count_targets(raw: dict[str, Any], clocks: Mapping[str, Clock], problems: list[Problem]) -> dict[str, Any]:
    """The policy with what models are to predict of columns of dates as numbers."""
    audit = cast(dict[str, Any], raw["audit"]) if isinstance(raw.get("audit"), dict) else {}
    predict = audit.get("predict")
    if not isinstance(predict, dict) or not clocks.keys() & predict.keys():
        return raw
    made = dict(cast(dict[str, Any], predict))
    for name in clocks.keys() & made.keys():
        target = made[name]
        if isinstance(target, dict) and "above" in target:
            try:
                made[name] = {**cast(dict[str, Any], target), "above": _count(target["above"], clocks[name])}
            except InvalidArgument as error:
                problems.append((("audit", "predict", name, "above"), error.what, error.remedy))
                made[name] = {**cast(dict[str, Any], target), "above": 0}
    return {**raw, "audit": {**audit, "predict": made}}


def write_dates(form: Mapping[str, Any]) -> dict[str, Any]:
    """The canonical form of a policy with its dates as a steward writes them."""
    columns, audit = dict(cast(Mapping[str, Any], form["columns"])), cast(dict[str, Any], form.get("audit") or {})
    predict = dict(cast(Mapping[str, Any], audit.get("predict") or {}))
    for name, column in columns.items():
        if MADE not in column:
            continue
        clock = Dated.model_validate(column[MADE]).clock
        written = {key: part for key, part in column.items() if key != MADE}
        written["grid"] = write_span(int(Decimal(column["grid"])), clock.unit)
        for option in ("domain", "atoms"):
            if written.get(option) is not None:
                written[option] = _show(written[option], clock)
        if isinstance(written.get("missing"), dict):
            written["missing"] = {"fill": _show(written["missing"]["fill"], clock)}
        columns[name] = written
        if name in predict and predict[name].get("above") is not None:
            predict[name] = {**predict[name], "above": _show(predict[name]["above"], clock)}
    return {**form, "columns": columns, **({"audit": {**audit, "predict": predict}} if predict else {})}


def _show(value: Any, clock: Clock) -> Any:
    """A number as its date, or each of a list."""
    if isinstance(value, list):
        return [_show(part, clock) for part in cast(list[Any], value)]
    return clock.show(float(value))


def _find_faults(column: Mapping[str, Any], here: Path) -> Iterator[Problem]:
    """What is wrong before anything can be counted."""
    if MADE in column:
        yield (*here, MADE), f"'{MADE}' is not known here.", "Declare domain and grid alone."
    domain = column.get("domain")
    ends = cast(list[Any], domain) if isinstance(domain, list) else []
    if len(ends) != 2 or not all(isinstance(end, str) for end in ends):
        what = "the grid is an amount of time, and the domain is no pair of dates."
        yield (*here, "domain"), what, "Declare [first, last], like [1990-01-01, 2025-12-31]."
    if "grid" not in column:
        yield here, "'grid' is missing.", _SPANS
    elif read_span(column["grid"]) is None:
        yield (*here, "grid"), "the domain has dates, and the grid is no amount of time.", _SPANS


def _count(value: Any, clock: Clock) -> Any:
    """A date as its number, or each of a list."""
    if isinstance(value, list):
        return [_count(part, clock) for part in cast(list[Any], value)]
    return clock.find(value if isinstance(value, str) else "")


# Columns of numbers, released masked by the method of the policy.


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

    @property
    def outside_domain(self) -> str:
        """What becomes of numbers outside the domain, whether or not its grid is right."""
        return self.outside

    def say(self, value: Decimal | Fraction | float) -> str:
        """One of its values, as people write it."""
        if self.clock is not None:
            return self.clock.show(float(value))
        if not isinstance(value, Decimal):
            value = Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)
        return decimal_text(value)

    def say_units(self, units: int) -> str:
        """The value at a point of its grid."""
        grid = self.exact_grid
        value = grid.lo + units * grid.step
        return self.say(value) if self.clock is not None else format(Decimal(value.numerator) / Decimal(value.denominator), "f")

    def name_entry(self, units: int) -> str:
        """The value at a point of the coded grid; behind the domain, the cell of the reason that stands there."""
        beyond = units - self.exact_grid.width - 1
        return self.say_units(units) if beyond < 0 else cell_of_reason(self.reasons[beyond])

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
    def atom_texts(self) -> tuple[str, ...]:
        """Its atoms, as people write them."""
        return tuple(map(self.say, self.atoms))

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
        """The grid, with a point behind its upper end for every reason why a record has no value."""
        grid = self.exact_grid
        return dataclasses.replace(grid, width=grid.width + len(self.reasons)) if self.reasons else grid

    def most_values(self, *, clamps: bool) -> int | None:
        """The points of the grid and a blank, where numbers are clamped."""
        return self.coded_grid.width + 2 if clamps else None

    @property
    def reason_points(self) -> tuple[float, ...]:
        """The points that stand for the reasons within the pipeline."""
        if not self.reasons:
            return ()
        width = self.exact_grid.width
        units = np.arange(width + 1, width + 1 + len(self.reasons), dtype=np.float64)
        return tuple(self.coded_grid.restore(units).tolist())

    @property
    def is_delivered_as_number(self) -> bool:
        """All but dates."""
        return self.dated is None

    @property
    def reason_entries(self) -> Mapping[str, float]:
        """The point of each reason."""
        return dict(zip(self.reasons, self.reason_points, strict=True))

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
        points = self.reason_entries
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
        line = f"domain {low} to {high} by {self.grid_text}, {self.outside} outside{reasons}; {self.why}"
        return f"{mask}; {line}" if mask else line

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        yield from super().find_faults(here)
        try:
            grid = self.exact_grid
        except ReleasePipelineError as error:
            yield (*here, "grid"), error.what, error.remedy
            return
        codes = [self._read_code(code) for code in self.codes]
        heaps = {atom for atom in self.atoms if atom in codes}
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
