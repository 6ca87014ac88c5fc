"""The weights that a column may have, as whole units: what tables add up exactly. All of it follows from declared facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from release_pipeline.policy.kinds import AnyColumn, DropColumn, KeepColumn, NoiseColumn
from release_pipeline.privacy import Grid
from release_pipeline.privacy.tables import ends_of


@dataclass(frozen=True)
class Weights:
    """`step`: what a unit is; `ends`: the least and the largest weight, in units. `grid`: of numbers; `listed`: the units of each
    weight of a list, by its text."""

    column: str
    step: Fraction
    ends: tuple[int, int]
    grid: Grid | None = None
    listed: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, name: str, column: AnyColumn) -> Weights | None:
        """Those of a column; None of one that declares neither a list nor a domain and grid."""
        if isinstance(column, KeepColumn):
            return cls._listed(name, column)
        grid = column.exact_grid if isinstance(column, NoiseColumn | DropColumn) else None
        return None if grid is None else cls(name, grid.step, ends_of(grid), grid=grid)

    @classmethod
    def _listed(cls, name: str, column: KeepColumn) -> Weights:
        """A list has the largest step that all of its weights are whole multiples of."""
        exact = {str(value): Fraction(Decimal(str(value))) for value in column.values}
        denominator = math.lcm(*(weight.denominator for weight in exact.values()))
        step = Fraction(math.gcd(*(int(weight * denominator) for weight in exact.values())), denominator)
        listed = {text: int(weight / step) for text, weight in exact.items()}
        return cls(name, step, (min(listed.values()), max(listed.values())), listed=listed)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The least and the largest weight."""
        return self.ends[0] * self.step, self.ends[1] * self.step


def weights_of(columns: Mapping[str, AnyColumn]) -> Weights | None:
    """Those of the column that has this role, if there is one and it declares any."""
    found = next(((name, column) for name, column in columns.items() if column.role == "weight"), None)
    return None if found is None else Weights.of(*found)
