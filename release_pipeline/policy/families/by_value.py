"""The methods that count by value: dp-cdf."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from release_pipeline.errors import InvalidArgument
from release_pipeline.policy.atoms import list_atoms
from release_pipeline.policy.families.base import APPEARS, ColumnPlan, Family, Plan, refuse_generalised
from release_pipeline.policy.families.rho import warn_of_rho
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import ByValueOptions
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.text import Problem
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.by_value import LEAST_STRENGTH, Budget, ByValue
from release_pipeline.privacy.figures import show_figure
from release_pipeline.privacy.methods import budget_of
from release_pipeline.sentences import POLICY

_RANKED = "show which records were ranked together"

# Counts of one column share its part among many levels: they gain by rho what several columns gain. Of 40,000 tax records at
# epsilon 1 and 3 one column has less error by epsilon, at a ratio of 14 and 15; two, at 7, are about even;
# three and more have less by rho.
WORSE_BY_RHO = 10


class ByValueFamily(Family[ByValueOptions]):
    """Every column is counted by value, and its ranks are given what explains the counts."""

    single_records = "its definition does not cover groups."
    publishes_counts = True

    def find_contradictions(self, parts: Parts, protect: ByValueOptions) -> Iterator[Problem]:
        """Nothing is generalised."""
        yield from refuse_generalised(parts, f"{protect.method} works on single columns and generalises none.")

    def check_column(self, parts: Parts, protect: ByValueOptions, name: str, *, width: int, share: Epsilon) -> Iterator[Problem]:
        """Noise on counts is as large on every grid, and fits for every epsilon that can be named."""
        yield from ()

    def declare(self, policy: Policy, name: str) -> ByValue:
        """What is declared of a column, and what it may spend."""
        column = policy.noise_columns[name]
        return ByValue(
            column.exact_grid,
            self.budget(policy, name),
            k=self.of(policy).k,
            centre=column.exact_centre,
            atoms=column.exact_atoms,
            labels=len(column.reasons),
        )

    def budget(self, policy: Policy, name: str) -> Budget:
        """What the counts of a column may lose together."""
        return budget_of(policy.definition, policy.column_epsilon[name])

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Of counts, as anybody can compute it: of released values nothing is known without the data."""
        for name, epsilon in policy.column_epsilon.items():
            budget = self.budget(policy, name)
            first = budget.first()
            last = budget.after(first.loss, Fraction(1))
            of_counts = POLICY("noise.by_value", first=show_figure(first.magnitude), last=show_figure(last.magnitude))
            yield ColumnPlan(name, epsilon, None, None, False, of_counts=of_counts, unit=policy.unit)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Counts of so few records are mostly noise: then sums by rank have less error."""
        records = rows // policy.parts
        for name in policy.noise_columns:
            budget = self.budget(policy, name)
            if records < (least := _least_records(budget)):
                strength = Fraction(budget.strength)
                k = max(min(round(2.2 * math.sqrt(records / strength)), records // 2), 1)
                part = " in a part" if policy.parts > 1 else ""
                raise InvalidArgument(
                    f"{records:,} records{part} are too few for counts by value: '{name}' needs {least:,}, by its {policy.unit}.",
                    where=f"columns.{name}",
                    remedy=f"Use method: dp-um with k: {k}, a larger epsilon or more weight for it, or fewer columns.",
                )

    def list_warnings(self, policy: Policy, rows: int | None) -> Iterator[str]:
        """How many records a release needs, where fewer could come."""
        needed = max(_least_records(self.budget(policy, name)) for name in policy.noise_columns) * policy.parts
        if rows is None or rows < needed:
            yield f"a release of fewer than {needed:,} records is refused before its charge: counts would be mostly noise"
        yield from warn_of_rho(policy, rows, times=WORSE_BY_RHO)

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """What is not covered, and what is done with atoms, centre and tail."""
        policy = plan.policy
        if policy.swap is None:
            yield (
                "not covered",
                f"the whole table: equal values, and the columns kept beside them, {_RANKED}, and that pattern follows from the "
                "data",
            )
        yield from self.describe_swap(policy)
        yield "", APPEARS
        for name, column in policy.noise_columns.items():
            yield "counts", f"{name}: {'; '.join(_describe_column(column))}"
        for warning in self.list_warnings(policy, plan.rows):
            yield "warning", warning
        yield "released", "inside the declared domain, on the declared grid; the noisy counts are in the package too"

    def describe_open_table(self, policy: Policy) -> str:
        """Why nothing bounds the table as a whole."""
        return POLICY("uncovered.table_by_value")


def _least_records(budget: Budget) -> int:
    """How many records counts by value need under this budget."""
    return math.ceil(LEAST_STRENGTH / budget.strength)


def _describe_column(column: NoiseColumn) -> Iterator[str]:
    """What is declared of a column beyond its domain."""
    centre = column.exact_grid.lo + column.exact_centre * column.exact_grid.step
    yield f"cells are finest at {column.say(centre)}"
    if column.atoms:
        yield f"a cell of its own for {list_atoms(column)}"
    if column.reasons:
        yield f"one for each reason to have no value ({', '.join(column.reasons)})"
