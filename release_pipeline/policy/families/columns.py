"""Methods that mask single columns, by sums or by counts; and the effect of noise by rho, or at declared atoms, on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.accounting.scales import PLAIN
from release_pipeline.mechanisms.basis.figures import show_figure
from release_pipeline.mechanisms.by_value import LEAST_STRENGTH, Budget, ByValue
from release_pipeline.mechanisms.columns.consistency import SHARE, choose_consistency, reach_of_atoms
from release_pipeline.mechanisms.columns.methods import budget_of, check_sizes, rule_of
from release_pipeline.policy.families.base import APPEARS, KEPT_COLUMNS, ColumnPlan, Family, Plan, refuse_generalised
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import ByValueOptions, ColumnOptions
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.values.formats import decimal_text, name_some
from release_pipeline.policy.values.text import Problem
from release_pipeline.sentences import POLICY


def warn_of_rho(policy: Policy, rows: int | None, *, times: int = 1) -> Iterator[str]:
    """Yield a warning if a claim by rho is weaker than it looks, or has no benefit: a delta so large that a record may fall under
    it, and noise that is larger than under eps-DP, the stronger definition, with the same epsilon. `times`: how many times more
    noise by rho a column bears (the variance of Gaussian noise over that of Laplace noise on a sum), before its released values
    are worse."""
    total = policy.protect.epsilon
    if policy.delta is None or total is None:
        return
    if rows is not None and policy.delta * rows * 10 > 1:
        yield (
            f"delta {decimal_text(policy.delta)} is more than a tenth of one over {rows:,} records: who publishes one record in "
            "clear keeps it, too. Use a smaller one."
        )
    pure = total.split([policy.protect.weights.get(name, Decimal(1)) for name in policy.column_epsilon])
    more = [
        name
        for (name, share), epsilon in zip(policy.column_epsilon.items(), pure, strict=True)
        if epsilon.fraction**2 > 4 * times * share.fraction  # sqrt(2) W / epsilon against W / sqrt(2 rho)
    ]
    if more:
        yield (
            f"under eps-DP, the stronger definition, the same epsilon would give less noise on {name_some(more)}: rho pays with "
            "many columns or releases. Remove definition and delta."
        )


# The effect of a policy's noise on the shares of records at declared atoms, as far as declared facts determine it.


SHOWN = 12
WAY_OUT = "Use idp-cbls or idp-ls at scope column, a larger epsilon or a coarser grid."


def list_atoms(column: NoiseColumn) -> str:
    """Return the atoms of a column in a sentence, the first dozen if there are many."""
    shown = ", ".join(map(column.say, column.atoms[:SHOWN]))
    return f"{shown} and {len(column.atoms) - SHOWN} more" if len(column.atoms) > SHOWN else shown


def _describe_kept_atoms(policy: Policy) -> str:
    """Return what happens to the atoms of a column when order is restored."""
    if policy.consistency == "none":
        return ": no order is restored that could move them"
    if policy.claim.keeps_atoms:
        return ": clusters that are exactly there stay there when order is restored; noise can bring others"
    return ": blocks that the noise does not let tell from them are put there when order is restored"


def warn_of_atoms(policy: Policy, rows: int | None) -> Iterator[str]:
    """Yield a sentence for each column in which the share of records at an atom may change by more than two percentage points,
    and why.

    idp-cbls, and idp-ls at scope column. A cluster of equal values has no noise. Records at an atom that are in full clusters
    stay there; the others are in the clusters at both ends of the heap: k - 1 in the first, and k - 1 in the last, or 2 k - 2 if
    it is the last of all, so at most 3 (k - 1).

    dp-um with order restored: `reach_of_atoms`. Otherwise every cluster (with laplace every record) has separate noise, and a
    value at an atom stays there if its noise rounds to 0.
    """
    for name, column in policy.noise_columns.items():
        if not column.atoms:
            continue
        lost = _warn(policy, column, policy.column_epsilon[name], rows)
        if lost:
            yield f"{name}: {lost}"


def _warn(policy: Policy, column: NoiseColumn, epsilon: Epsilon, rows: int | None) -> str:
    k, part = policy.protect.k or 1, None if rows is None else rows // policy.parts
    rule, width = rule_of(policy.claim), column.exact_grid.width
    if not policy.claim.keeps_atoms and policy.consistency == "none":
        stay = _rounded_to_nothing(rule.least(width, epsilon), k, clamps=policy.clamps)
        many = f"{'about' if rule.is_public else 'at most'} {stay:.1%}"
        what = "record" if policy.method.by_record else "cluster"
        return (
            f"every {what} has noise of its own, which leaves {many} of those at an atom there. {WAY_OUT}"
            if stay < 1 - SHARE
            else ""
        )
    if part is None:
        return (
            "what is left of the shares at atoms depends on the number of rows. Declare gates.min_rows, or name it with --rows."
        )
    if policy.claim.keeps_atoms:
        edge = 3 * (k - 1) / max(part, 1)
        return (
            f"up to {min(edge, 1.0):.1%} of the records can stand at an atom in clusters that other values share, and leave it "
            f"(for {part:,} rows{_of_part(policy)}). Use a smaller k, or more rows."
            if edge > SHARE
            else ""
        )
    reach = reach_of_atoms(rule.least(width, epsilon), k, max(part // k, 1))
    if reach < 0.5:
        return ""
    distance = f"{decimal_text(Decimal(f'{reach * float(column.grid):.2g}'))} {column.noise_unit}".rstrip()
    return (
        f"values nearer than about {distance} to an atom cannot be told from it under this noise, and may be counted there or "
        f"leave it (for {part:,} rows{_of_part(policy)}). {WAY_OUT}"
    )


def _of_part(policy: Policy) -> str:
    return " in a part" if policy.parts > 1 else ""


def _rounded_to_nothing(scale: int, k: int, *, clamps: bool) -> float:
    """Return P[|Z| < k/2] of the discrete Laplace; P[Z = 0] if values stay where the noise put them."""
    most = (k - 1) // 2 if clamps else 0
    return 1 - 2 * math.exp(-(most + 1) / scale) / (1 + math.exp(-1 / scale))


# The methods that work column by column: laplace, dp-um, idp-ls, idp-cbls, and all others of their family in the catalogue.


_OPEN_TABLE = (
    "the whole table: equal values, and the columns kept beside them, show which records were ranked together, and that pattern "
    "follows from the data"
)


class ColumnFamily(Family[ColumnOptions]):
    """Every column has its own clusters, or every record separate noise."""

    single_records = "individual differential privacy does not cover groups."

    def find_contradictions(self, parts: Parts, protect: ColumnOptions) -> Iterator[Problem]:
        """Yield a problem for a wrong k, for an order that is not free to restore, and for generalised columns."""
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
        """Yield noise that could leave 64 bits, by the largest scale over all data, which declared facts give."""
        try:
            rows, grid = parts.least_rows(protect.k), parts.noise_columns[name].exact_grid
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
        """Yield the noise of each column, by the rule for its scales: exact if anybody can compute it, else the worst over all
        data."""
        protect, sums = self.of(policy), policy.method.sums or PLAIN
        k, rule = protect.k or 1, rule_of(policy.claim)
        for name, column in policy.noise_columns.items():
            grid, epsilon = column.exact_grid, policy.column_epsilon[name]
            magnitude = rule.mean_noise(sums, k=k, clusters=clusters, width=grid.width, epsilon=epsilon)
            noise = None if magnitude is None else magnitude * float(grid.step) / k
            share = None if noise is None else noise / (grid.width * float(grid.step))
            yield ColumnPlan(name, epsilon, noise, share, not rule.is_public, unit=policy.unit, counted_in=column.noise_unit)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Refuse so many rows if the largest scale over all data, in the largest random part, does not fit."""
        protect, records = self.of(policy), -(-rows // policy.parts)
        for name, column in policy.noise_columns.items():
            share, grid = policy.column_epsilon[name], column.exact_grid
            self._check_sizes(protect, grid, share, records)

    def list_warnings(self, policy: Policy, rows: int | None) -> Iterator[str]:
        """Yield warnings about shares at atoms, and about the cost of a claim by rho."""
        yield from warn_of_atoms(policy, rows)
        yield from warn_of_rho(policy, rows)

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield the bounds of wider scopes, what is not covered, and what happens to order, atoms and domain."""
        policy = plan.policy
        if policy.protect.scope == "centroid":
            yield "wider", f"column lists: {self.describe_lists(plan)}"
        yield from self.describe_swap(policy)
        if policy.swap is None and not policy.covers_table:
            yield "not covered", KEPT_COLUMNS if policy.method.by_record else _OPEN_TABLE
        yield "", APPEARS
        yield "consistency", _describe_consistency(policy)
        for name, column in policy.noise_columns.items():
            if column.atoms:
                yield "atoms", f"{name}: {list_atoms(column)}{_describe_kept_atoms(policy)}"
        for warning in self.list_warnings(policy, plan.rows):
            yield "warning", warning
        if policy.clamps:
            yield "released", "inside the declared domain, on the declared grid"
        else:
            what = "released values stay where the noise put them, and may lie outside their domain; the claim is the same"
            yield "clamp", f"no: {what}"

    def describe_before(self, policy: Policy) -> str:
        """Return that order and domain are restored after the noise."""
        if policy.clamps:
            return ", before order and domain are restored"
        return ", before order is restored" if policy.consistency == "isotonic" else ""

    def describe_open_table(self, policy: Policy) -> str:
        """Return why nothing bounds the table as a whole."""
        if policy.method.by_record:
            return POLICY("uncovered.table_of_records")
        return POLICY("uncovered.table_of_ranks")

    def view_options(self, policy: Policy) -> dict[str, str | None]:
        """Return the options that the plan names for scripts, by their key there."""
        return {"clamp": None if policy.clamps else "no"}


def _describe_consistency(policy: Policy) -> str:
    if policy.consistency == "none":
        return "none"
    return (
        "isotonic: the order of the clusters is restored after the noise. It costs no epsilon and makes errors smaller. It takes "
        "means over neighbouring clusters, which moves what many records share (zeros, codes, ages in round numbers) unless the "
        "column declares it: atoms: [0]"
    )


# The methods that count by value: dp-cdf.


# Counts of one column share its budget among many levels: they gain from rho what several columns gain. With 40,000 tax records
# at epsilon 1 and 3, one column has less error by epsilon, at a ratio of 14 and 15; two, at 7, are about even; three and more
# have less by rho.
WORSE_BY_RHO = 10


class ByValueFamily(Family[ByValueOptions]):
    """Every column is counted by value, and its ranks are given values that explain the counts."""

    single_records = "its definition does not cover groups."
    publishes_counts = True

    def find_contradictions(self, parts: Parts, protect: ByValueOptions) -> Iterator[Problem]:
        """Yield a problem for every generalised column."""
        yield from refuse_generalised(parts, f"{protect.method} works on single columns and generalises none.")

    def check_column(self, parts: Parts, protect: ByValueOptions, name: str, *, width: int, share: Epsilon) -> Iterator[Problem]:
        """Yield nothing: noise on counts is equally large on every grid, and fits for every epsilon that can be declared."""
        yield from ()

    def declare(self, policy: Policy, name: str) -> ByValue:
        """Return what is declared of a column, and what it may spend."""
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
        """Return what the counts of a column may lose together."""
        return budget_of(policy.definition, policy.column_epsilon[name])

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Yield the public noise of counts; nothing is known about released values without the data."""
        for name, epsilon in policy.column_epsilon.items():
            budget = self.budget(policy, name)
            first = budget.first()
            last = budget.after(first.loss, Fraction(1))
            of_counts = POLICY("noise.by_value", first=show_figure(first.magnitude), last=show_figure(last.magnitude))
            yield ColumnPlan(name, epsilon, None, None, False, of_counts=of_counts, unit=policy.unit)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Refuse so few records that counts are mostly noise: then sums by rank have less error."""
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
        """Yield how many records a release needs, if fewer are possible."""
        needed = max(_least_records(self.budget(policy, name)) for name in policy.noise_columns) * policy.parts
        if rows is None or rows < needed:
            yield f"a release of fewer than {needed:,} records is refused before its charge: counts would be mostly noise"
        yield from warn_of_rho(policy, rows, times=WORSE_BY_RHO)

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield what is not covered, and what is done with atoms, centre and tail."""
        policy = plan.policy
        if policy.swap is None:
            yield "not covered", _OPEN_TABLE
        yield from self.describe_swap(policy)
        yield "", APPEARS
        for name, column in policy.noise_columns.items():
            yield "counts", f"{name}: {'; '.join(_describe_column(column))}"
        for warning in self.list_warnings(policy, plan.rows):
            yield "warning", warning
        yield "released", "inside the declared domain, on the declared grid; the noisy counts are in the package too"

    def describe_open_table(self, policy: Policy) -> str:
        """Return why nothing bounds the table as a whole."""
        return POLICY("uncovered.table_by_value")


def _least_records(budget: Budget) -> int:
    """Return how many records counts by value need under this budget."""
    return math.ceil(LEAST_STRENGTH / budget.strength)


def _describe_column(column: NoiseColumn) -> Iterator[str]:
    """Yield what is declared of a column besides its domain."""
    centre = column.exact_grid.lo + column.exact_centre * column.exact_grid.step
    yield f"cells are finest at {column.say(centre)}"
    if column.atoms:
        yield f"a cell of its own for {list_atoms(column)}"
    if column.reasons:
        yield f"one for each reason to have no value ({', '.join(column.reasons)})"
