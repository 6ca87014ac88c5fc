"""The methods that work column by column: laplace, dp-um, idp-ls, idp-cbls, and what else the catalogue has of their family."""

from __future__ import annotations

from collections.abc import Iterator

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.atoms import describe_kept_atoms, list_atoms, warn_of_atoms
from release_pipeline.policy.families.base import (
    APPEARS,
    KEPT_COLUMNS,
    ColumnPlan,
    Family,
    Plan,
    refuse_generalised,
)
from release_pipeline.policy.families.rho import warn_of_rho
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import ColumnOptions
from release_pipeline.policy.parts import Parts
from release_pipeline.policy.text import Problem
from release_pipeline.privacy import Epsilon, Grid
from release_pipeline.privacy.consistency import choose_consistency
from release_pipeline.privacy.methods import check_sizes, rule_of
from release_pipeline.privacy.scales import PLAIN
from release_pipeline.sentences import POLICY

_RANKED = "show which records were ranked together"


class ColumnFamily(Family[ColumnOptions]):
    """Every column has its own clusters, or every record noise of its own."""

    single_records = "individual differential privacy does not cover groups."

    def find_contradictions(self, parts: Parts, protect: ColumnOptions) -> Iterator[Problem]:
        """A k where the method has clusters, order restored only where that is free, and nothing generalised."""
        if not protect.spec.takes_k:
            if protect.k is not None:
                yield ("protect", "k"), f"{protect.method} masks every record on its own and has no k.", "Remove k."
        elif protect.k is None:
            what = f"k is missing: {protect.method} needs the number of records per cluster."
            yield ("protect",), what, "Add k, like k: 25."
        try:
            choose_consistency(protect.consistency, method=protect.method, scope=protect.scope)
        except ReleasePipelineError as error:
            yield ("protect", "consistency"), error.what, error.remedy
        yield from refuse_generalised(parts, f"{protect.method} works on single columns and generalises none.")

    def check_column(self, parts: Parts, protect: ColumnOptions, name: str, *, width: int, share: Epsilon) -> Iterator[Problem]:
        """By the largest scale over all data, which follows from declared facts."""
        try:
            rows, grid = parts.least_rows(protect.k), parts.noise[name].exact_grid
            self._check_sizes(protect, grid, share, rows)
        except ReleasePipelineError as error:
            if error.where != "k":
                yield ("columns", name, "grid"), error.what, error.remedy
            elif protect.k is not None and protect.spec.takes_k:
                yield ("protect", "k"), error.what, error.remedy

    def _check_sizes(self, protect: ColumnOptions, grid: Grid, share: Epsilon, records: int) -> None:
        check_sizes(
            method=protect.method,
            k=protect.k,
            grid=grid,
            epsilon=share,
            scope=protect.scope,
            records=records,
            definition=protect.definition,
        )

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """By the rule of the scales: the noise itself where anybody can compute it, or else the worst over all data."""
        protect, sums = self.of(policy), policy.method.sums or PLAIN
        k, rule = protect.k or 1, rule_of(policy.claim)
        for name, column in policy.noise_columns.items():
            grid, epsilon = column.exact_grid, policy.column_epsilon[name]
            magnitude = rule.mean_noise(sums, k=k, clusters=clusters, width=grid.width, epsilon=epsilon)
            noise = None if magnitude is None else magnitude * float(grid.step) / k
            share = None if noise is None else noise / (grid.width * float(grid.step))
            yield ColumnPlan(name, epsilon, noise, share, not rule.is_public, unit=policy.unit, counted_in=column.noise_unit)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """By the largest scale over all data, in the largest random part."""
        protect, records = self.of(policy), -(-rows // policy.parts)
        for name, column in policy.noise_columns.items():
            share, grid = policy.column_epsilon[name], column.exact_grid
            self._check_sizes(protect, grid, share, records)

    def list_warnings(self, policy: Policy, rows: int | None) -> Iterator[str]:
        """Of the shares at atoms."""
        yield from warn_of_atoms(policy, rows)
        yield from warn_of_rho(policy, rows)

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """What wider scopes have, what is not covered, and what becomes of order, atoms and domain."""
        policy = plan.policy
        if policy.protect.scope == "centroid":
            yield "wider", f"column lists: {self.describe_lists(plan)}"
        yield from self.describe_swap(policy)
        if policy.swap is None and not policy.covers_table:
            yield (
                "not covered",
                KEPT_COLUMNS
                if policy.method.by_record
                else f"the whole table: equal values, and the columns kept beside them, {_RANKED}, and "
                "that pattern follows from the data",
            )
        yield "", APPEARS
        yield "consistency", _describe_consistency(policy)
        for name, column in policy.noise_columns.items():
            if column.atoms:
                yield "atoms", f"{name}: {list_atoms(column)}{describe_kept_atoms(policy)}"
        for warning in self.list_warnings(policy, plan.rows):
            yield "warning", warning
        if policy.clamps:
            yield "released", "inside the declared domain, on the declared grid"
        else:
            what = "released values stay where the noise put them, and may lie outside their domain; the claim is the same"
            yield "clamp", f"no: {what}"

    def describe_before(self, policy: Policy) -> str:
        """Order and domain are restored after the noise."""
        if policy.clamps:
            return ", before order and domain are restored"
        return ", before order is restored" if policy.consistency == "isotonic" else ""

    def describe_open_table(self, policy: Policy) -> str:
        """Why nothing bounds the table as a whole."""
        if policy.method.by_record:
            return POLICY("uncovered.table_of_records")
        return POLICY("uncovered.table_of_ranks")

    def view_options(self, policy: Policy) -> dict[str, str | None]:
        """The options that the plan names for scripts, by their key there."""
        return {"clamp": None if policy.clamps else "no"}


def _describe_consistency(policy: Policy) -> str:
    if policy.consistency == "none":
        return "none"
    return (
        "isotonic: the order of the clusters is restored after the noise. It costs no epsilon and makes errors smaller. It takes "
        "means over neighbouring clusters, which moves what many records share (zeros, codes, ages in round numbers) unless the "
        "column declares it: atoms: [0]"
    )
