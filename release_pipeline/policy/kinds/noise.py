"""Columns of numbers, released masked by the method of the policy."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.declared import Frozen, Option
from release_pipeline.policy.kinds.base import ColumnKind, QuasiOrConfidential, ReleasedAs
from release_pipeline.policy.readings import NumberReading
from release_pipeline.policy.scalars import Domain, Exact, Outside, Step, Why, ascending, unique
from release_pipeline.policy.text import Path, Problem
from release_pipeline.privacy import Grid
from release_pipeline.privacy.vectors import Transform

MOST_ATOMS = 100  # of one column


class Fill(Frozen):
    """Missing numbers become this one."""

    fill: Exact


@lru_cache(maxsize=4096)
def _declare_grid(domain: tuple[Decimal, Decimal], step: Decimal) -> Grid:
    """A declared grid, which is asked for in every stage of every column."""
    return Grid.declare(domain, step)


_NO_ATOMS = "atoms are for methods that work column by column: {}."


class NoiseColumn(ColumnKind):
    """A number, released masked. Domain, grid and what happens outside are declared, never learned from data. `transform`: what
    the order of dp-mdav sees of it. `atoms`: values that readers count, which consistency does not move."""

    missing_form: ClassVar[type[Frozen]] = Fill

    do: Literal["noise"]
    role: QuasiOrConfidential
    domain: Domain
    grid: Step
    outside: Outside
    why: Why
    missing: Literal["fail"] | Fill = "fail"
    transform: Annotated[
        Transform | None,
        Option(
            added_later=True,
            not_for=dict.fromkeys(("columns", "mdav", "classes"), "transform is for the order of dp-mdav; {method} has none."),
        ),
    ] = None
    atoms: Annotated[
        tuple[Exact, ...],
        AfterValidator(unique),
        AfterValidator(ascending),
        Option(
            hint="List values of the grid that readers count, like [0].",
            added_later=True,
            not_for={
                "mdav": _NO_ATOMS.format("the means of {method} are of clusters of all columns together, and stay as they are"),
                "vectors": _NO_ATOMS.format(
                    "{method} restores no order that could move them, and its clusters mix them with other values"
                ),
                "classes": _NO_ATOMS.format("{method} restores no order that could move them, and has noise on every record"),
            },
            instead="Remove them, or use idp-cbls, idp-ls or dp-um.",
        ),
    ] = ()

    @property
    def seen_as(self) -> Transform:
        """What the order sees of it."""
        return self.transform or "linear"

    @property
    def exact_grid(self) -> Grid:
        """The grid of this column."""
        return _declare_grid(self.domain, self.grid)

    @property
    def exact_atoms(self) -> tuple[int, ...]:
        """Its atoms in units of the grid."""
        return self.exact_grid.units_of(self.atoms)

    @property
    def fill(self) -> Decimal | None:
        """What missing numbers become, if one may be missing."""
        return self.missing.fill if isinstance(self.missing, Fill) else None

    @property
    def reading(self) -> NumberReading:
        """How the source's column is read."""
        low, high = self.domain
        return NumberReading(low=low, high=high, step=self.grid, outside=self.outside, fill=self.fill)

    @property
    def released_as(self) -> ReleasedAs:
        """The type of the released column."""
        return "number"

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        low, high = (format(bound, "f") for bound in self.domain)
        words = f"domain {low} to {high} by {self.grid:f}, {self.outside} outside; {self.why}"
        return f"{mask}; {words}" if mask else words

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """What is wrong with the options of this column by themselves."""
        try:
            grid = self.exact_grid
        except ReleasePipelineError as error:
            yield (*here, "grid"), error.what, error.remedy
            return
        if self.fill is not None and not grid.lo <= self.fill <= grid.hi:
            yield (*here, "missing"), "the fill lies outside the domain.", "Choose a number inside it."
        try:
            grid.units_of(self.atoms)
        except ReleasePipelineError as error:
            yield (*here, "atoms"), error.what, error.remedy
        if len(self.atoms) > MOST_ATOMS:
            what = f"there are {len(self.atoms)} atoms, and a column has {MOST_ATOMS} at the most."
            yield (*here, "atoms"), what, "Name those that readers count."
