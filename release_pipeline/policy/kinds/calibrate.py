"""Weights that are read and never released; in their place stand weights that are made of published tables."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.declared import Option
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.kinds.base import ROLE, ReleasedAs
from release_pipeline.policy.kinds.labels import LabelledColumn
from release_pipeline.policy.readings import NumberReading
from release_pipeline.policy.scalars import Domain, Exact, Outside, Slug, Step, Why, unique
from release_pipeline.policy.text import Path, Problem
from release_pipeline.privacy import Grid

_AT = "Say at_least and at_most as steps of the grid, above 0, the least first."


class CalibrateColumn(LabelledColumn):
    """The weight of a sample, read and added up in tables as a dropped one. Under its name each released row gets a weight
    that is made of the published tables `to` and the released rows alone, a multiple of `grid`, from `at_least` to `at_most`
    where these are said. The weight of a record goes nowhere but into the tables."""

    is_released: ClassVar[bool] = False  # of the records
    do: Literal["calibrate"]
    role: Annotated[Literal["weight"], ROLE]
    to: Annotated[
        tuple[Slug, ...],
        AfterValidator(unique),
        Field(min_length=1, max_length=20),
        Option(hint="List weighted tables of counts, like [people]."),
    ]
    domain: Domain
    grid: Step
    outside: Outside
    at_least: Exact | None = None
    at_most: Exact | None = None
    why: Why | None = None

    @property
    def exact_grid(self) -> Grid:
        """The grid of the weights that tables add up, and of those that are published."""
        return Grid.declare(self.domain, self.grid)

    @property
    def reading(self) -> NumberReading:
        """How the source's weights are read."""
        low, high = self.domain
        return NumberReading(low=low, high=high, step=self.grid, outside=self.outside)

    @property
    def released_as(self) -> ReleasedAs:
        """What is made is a number."""
        return "number"

    def describe(self, mask: str, *, is_read: bool = False) -> str:
        """What becomes of the column, in a line."""
        low, high = (decimal_text(end) for end in self.domain)
        ends = [f"at least {decimal_text(self.at_least)}"] if self.at_least is not None else []
        ends += [f"at most {decimal_text(self.at_most)}"] if self.at_most is not None else []
        made = ", ".join([f"released anew, made of the published tables {', '.join(self.to)}", *ends])
        how = f"domain {low} to {high} by {decimal_text(self.grid)}, {self.outside} outside"
        return "; ".join(part for part in (made, f"its own are added up in tables with noise; {how}", self.why) if part)

    def examples(self, most: int) -> list[Any]:
        """The ends of the weights."""
        return [float(end) for end in self.domain]

    def find_faults(self, here: Path) -> Iterator[Problem]:
        """A grid that does not fit, and bounds that no weight could keep."""
        if self.domain[0] < 0:
            yield (*here, "domain"), "a weight is no number below 0.", "Begin the domain at 0 or above."
            return
        try:
            _ = self.exact_grid
        except ReleasePipelineError as error:
            yield (*here, "grid"), error.what, error.remedy
            return
        for name, bound in (("at_least", self.at_least), ("at_most", self.at_most)):
            if bound is not None and (bound <= 0 or bound % self.grid != Decimal(0)):
                yield (*here, name), f"{name} is no step of the grid above 0.", _AT
        if self.at_least is not None and self.at_most is not None and self.at_least >= self.at_most:
            yield (*here, "at_most"), "at_most is not above at_least.", _AT
