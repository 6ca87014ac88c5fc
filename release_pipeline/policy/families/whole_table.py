"""The methods that count a whole table: dp-table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms.accounting.budget import NANO, Epsilon, epsilon_of, format_nano, format_nano_up
from release_pipeline.mechanisms.basis.figures import count_of, format_count, join_names, show_figure
from release_pipeline.mechanisms.whole_table.design import (
    Column,
    Design,
    Make,
    TableBudget,
    find_enough_budget,
    find_enough_records,
    is_enough,
    make_design,
)
from release_pipeline.policy.families.base import ColumnPlan, Family, Plan, amount_words, refuse_generalised
from release_pipeline.policy.file.describe import describe_record_gates
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import WholeTableOptions
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.kinds import AnyColumn, ListedColumn, NoiseColumn, SynthesiseColumn
from release_pipeline.policy.values.formats import decimal_text, name_some, say_unit
from release_pipeline.policy.values.text import Problem
from release_pipeline.sentences import POLICY

MOST_COLUMNS = 60
NO_WEIGHT = "synthetic rows are nobody's and stand for no number of people, so that no weight belongs to one."
INSTEAD_OF_WEIGHT = (
    "Say role: confidential for it (a number as any other: its distribution is kept, and sums by it are not those of the "
    "population), or do: drop."
)
_EVERYTHING = "everything that a reader of the release sees"
_LESS_TOGETHER = "; on average less where several columns are counted together, which noisy counts of columns decide"
_PARTS = (100, 10, 2)  # shares of the records (1 in so many): groups whose means a plan describes


class WholeTableFamily(Family[WholeTableOptions]):
    """All columns are counted together, and rows are made from the noisy counts."""

    single_records = "its definition does not cover groups."
    publishes_counts = True

    def find_contradictions(self, parts: Parts, protect: WholeTableOptions) -> Iterator[Problem]:
        """Yield a problem for every released column that is not synthetic: it would have no bound."""
        yield from refuse_generalised(parts, f"{protect.method} makes up every row, and generalises none.")
        for name in parts.kept_columns:
            what = f"'{name}' would be released as it is, and {protect.method} has one claim for {_EVERYTHING}."
            yield ("columns", name, "do"), what, "Say do: synthesise, or drop the column."
        for name, column in parts.noise_columns.items():
            if column.do == "noise":
                what = f"{protect.method} has no noise on values: its rows are made of noisy counts."
                yield ("columns", name, "do"), what, "Say do: synthesise."
            elif column.role == "weight":
                yield ("columns", name, "role"), NO_WEIGHT, INSTEAD_OF_WEIGHT
        if protect.partitions is not None:
            what = f"{protect.method} counts all records together: counts of parts would each have all of the noise."
            yield ("protect", "partitions"), what, "Remove partitions."
        if parts.tables:
            what = f"tables count kept columns, and beside {protect.method} none is; its own noisy counts are in the package."
            yield ("tables",), what, "Remove them, or publish them by a policy of their own."
        if parts.gates is not None and parts.gates.group_mean:
            what = "means of groups follow from rows of all columns together, which are not simulated before the charge."
            yield ("gates", "group_mean"), what, "Use expected_error or ks; the page has the means of groups."
        if parts.gates is not None and parts.gates.group_error:
            what = "rows are nobody's, so that no record of a group has an error."
            yield ("gates", "group_error"), what, "Use expected_error or ks; the page has the means of groups."
        count = len(parts.noise_columns) + sum(isinstance(column, SynthesiseColumn) for column in parts.columns.values())
        if count > MOST_COLUMNS:
            what = f"{count} columns make {count * (count - 1) // 2:,} pairs, and all are counted: {MOST_COLUMNS} columns do."
            yield ("columns",), what, "Drop some."

    def check_noise(self, parts: Parts, protect: WholeTableOptions) -> Iterator[Problem]:
        """Yield a problem if the budget is too small for the fewest records that the policy allows; a release of them would be
        refused, too."""
        rows = parts.gates.min_rows if parts.gates else None
        if rows is None or not parts.complete:
            return
        try:
            make = maker_of(parts.columns)
            lacking = "" if is_enough(make(rows, budget_for(protect))) else describe_lack(make, rows, protect)
        except ReleasePipelineError as error:  # a column's own check reports it; or the check of the budget does
            if error.where == "epsilon":
                yield ("protect", "epsilon"), error.what, error.remedy
            return
        if lacking:
            yield ("protect", "epsilon"), f"min_rows is {rows:,}, and that is too little for {protect.method}.", lacking

    def check_suppression(self, parts: Parts, protect: WholeTableOptions) -> Iterator[Problem]:
        """Yield a problem if anything is to be suppressed: there is nothing to suppress."""
        if parts.suppress is not None:
            what = f"the rows of {protect.method} are nobody's, so that no small group is one of people."
            yield ("suppress",), what, "Remove suppress."

    def declare(self, policy: Policy, rows: int) -> Design:
        """Return the design: what is measured for so many records."""
        return maker_of(policy.columns)(rows, budget_for(self.of(policy)))

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Yield the noise of counts; nothing is known about released values without the data."""
        for name in policy.noise_columns:
            yield ColumnPlan(name, None, None, None, False, of_counts=POLICY("noise.of_counts"), unit=policy.unit)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Refuse so few records, or so small a budget, that rows would be mostly noise."""
        design = self.declare(policy, rows)
        if not is_enough(design):
            budget = amount_words(policy, policy.protect.charged.nano if policy.protect.charged else 0).rstrip(",")
            of = f"{policy.protect.method} with {count_of(len(design.columns), 'column')} and {budget}"
            raise InvalidArgument(
                f"{count_of(rows, 'record')} are too few for {of}.",
                where="protect",
                remedy=describe_lack(maker_of(policy.columns), rows, self.of(policy)),
            )

    def list_warnings(self, policy: Policy, rows: int | None) -> Iterator[str]:
        """Yield how many records a release needs, if fewer are possible; and what synthetic rows should not be used for."""
        needed = find_enough_records(maker_of(policy.columns), budget_for(self.of(policy)))
        if needed is None:
            yield "no number of records would be enough: every release is refused before its charge"
        elif rows is None or rows < needed:
            yield f"a release of fewer than about {needed:,} records is refused before its charge: rows would be mostly noise"

    def describe_claim(self, policy: Policy) -> str:
        """Return one number for the whole release."""
        definition, times = policy.claim.definition.short, _describe_times(policy)
        amount, given = _amount(policy), _describe_given(policy)
        return POLICY("claim.everything", amount=amount, definition=definition, given=given, times=times)

    def describe_headline(self, policy: Policy) -> str:
        """Return what everything costs a person with all of their records, given that the gates passed."""
        return POLICY("amount.everything", amount=_amount(policy), given=_describe_given(policy))

    def bound_table(self, policy: Policy, clusters: int | None = None, rows: int | None = None) -> str:
        """Return that the claim itself is for the whole table."""
        return POLICY("bound.same")

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield what is counted, and with how much noise; and what is released."""
        policy = plan.policy
        names = list(declare_columns(policy.columns))
        pairs = len(names) * (len(names) - 1) // 2
        yield "counted", f"every column ({len(names)}), and every pair of columns ({pairs:,}): none is chosen by the data"
        if plan.rows is not None:
            yield from _describe_design(policy, self.declare(policy, plan.rows))
        for warning in self.list_warnings(policy, plan.rows):
            yield "warning", warning
        yield (
            "released",
            "synthetic rows, as many as there are records; and the noisy counts that they were made from, which "
            "answer with intervals",
        )
        yield "not kept", "how three columns or more go together beyond what their pairs say, and what only a few records have"


def declare_columns(columns: Mapping[str, AnyColumn]) -> dict[str, Column]:
    """Return what is public about every released column, sorted by name: the order in the file must not matter, because the hash
    ignores it."""
    declared: dict[str, Column] = {}
    for name, column in sorted(pick_synthetic(columns).items()):
        labels = len(column.reasons)
        if isinstance(column, NoiseColumn):
            width = column.exact_grid.width
            centre = min(max(column.exact_centre, 0), width)  # the end of the domain that is nearest to 0
            declared[name] = Column(width, atoms=column.exact_atoms, centre=centre, labels=labels)
        else:
            declared[name] = Column(len(column.values) - 1, nominal=True, labels=labels)
    return declared


def describe_instead(policy: Policy) -> Iterator[str]:
    """Yield what dp-table would give instead of a method that masks some columns and keeps others: no such method covers the kept
    columns, nor rows that join them all."""
    protect, total = policy.protect, policy.protect.charged
    could_be_counted = {**policy.noise_columns, **policy.kept_columns}
    columns = {name: column for name, column in could_be_counted.items() if column.role != "weight"}
    masks_some = bool(policy.kept_columns and policy.noise_columns) and not protect.is_synthetic
    if not masks_some or total is None or len(columns) > MOST_COLUMNS:
        return
    try:
        needed = find_enough_records(maker_of(columns), TableBudget(total.fraction, protect.by_rho))
    except ReleasePipelineError:  # a fault of a column, or too small a budget for any noise
        return
    kind = f"{policy.unit} {total} of {'zCDP' if protect.by_rho else 'eps-DP'}"
    takes = "no number of records would be enough" if needed is None else f"it takes about {needed:,} records"
    yield (
        "dp-table would have one claim for all of it, kept columns included, and no row would be anybody's (do: synthesise); "
        f"with {kind} for everything {takes}"
    )


def maker_of(columns: Mapping[str, AnyColumn]) -> Make:
    """Return the function that makes the design for a number of records and a budget."""
    declared = declare_columns(columns)
    return lambda records, budget: make_design(tuple(declared.values()), records, budget)


def pick_synthetic(columns: Mapping[str, AnyColumn]) -> dict[str, NoiseColumn | ListedColumn]:
    """Return the columns that are counted: all released columns, if rows are synthetic."""
    return {name: column for name, column in columns.items() if isinstance(column, NoiseColumn | ListedColumn)}


def budget_for(protect: WholeTableOptions) -> TableBudget:
    """Return what the whole table may lose."""
    return TableBudget(protect.charged.fraction, protect.by_rho)


def describe_lack(make: Make, rows: int, protect: WholeTableOptions) -> str:
    """Return how many records, or how much epsilon, would be enough."""
    budget, ways = budget_for(protect), list[str]()
    if (records := find_enough_records(make, budget)) is not None:
        ways.append(f"about {records:,} records")
    if (amount := find_enough_budget(make, rows, budget)) is not None:
        ways.append(f"about {_as_epsilon(amount, protect)}")
    enough = f"Enough would be {' or '.join(ways)}" if ways else "Nothing that can be named would be enough"
    return f"{enough}; or fewer columns, or narrower domains, coarser grids and fewer values."


def _as_epsilon(amount: Fraction, protect: WholeTableOptions) -> str:
    """Return a budget as the policy writes it."""
    if protect.by_rho and protect.delta is not None:
        return f"epsilon {show_figure(epsilon_of(int(amount * NANO), protect.delta) / NANO)} at the same delta"
    return f"epsilon {Epsilon(int(amount * NANO))}"


def _amount(policy: Policy) -> str:
    """Return the total as text. The epsilon of a rho is rounded up to a millionth, which hides that a rho is rounded down to fit
    the declared epsilon."""
    total = policy.epsilon or 0
    if policy.delta is None:
        return POLICY("amount.epsilon", epsilon=format_nano(total))
    epsilon = format_nano_up(policy.in_epsilon(total), 6)
    delta = decimal_text(policy.delta)
    return POLICY("amount.rho_of_all", epsilon=epsilon, delta=delta, rho=format_nano(total))


def _describe_given(policy: Policy) -> str:
    """Return a sentence on the gates that depend on the records: the claim is for a release that appears, which shows that they
    passed."""
    gates = list(describe_record_gates(policy))
    return POLICY("amount.given", gates=join_names(gates, "semicolon")) if gates else ""


def _describe_times(policy: Policy) -> str:
    """Return how the total follows from the cost of one record, if a person may have several."""
    records = policy.records_per_person
    if records == 1:
        return ""
    total, unit, whose = policy.rows_epsilon or 0, say_unit(policy.unit), policy.privacy_unit
    if policy.protect.by_rho:
        each = format_nano(total // records**2)
        return POLICY("amount.everything_squared", unit=unit, each=each, records=records, whose=whose)
    return POLICY("amount.everything_times", unit=unit, each=format_nano(total // records), records=records, whose=whose)


def _describe_design(policy: Policy, design: Design) -> Iterator[tuple[str, str]]:
    """Yield how finely records are counted, and how much noise there is."""
    names = list(declare_columns(policy.columns))
    margin = show_figure(design.margins.magnitude)
    yield "counts", f"of a column's cells: noise {margin} on average, of {design.records:,} records"
    if design.cuts:
        deep = [f"{names[column]} {2**depth}" for column, (_, depth) in design.cuts.items()]
        yield "cells", f"of wide columns, cut where noisy ranks say, about: {name_some(deep)}"
    if design.pairs:
        noise = next(iter(design.pairs.values()))  # the same for every pair
        most = "about" if design.in_blocks else "at most"
        yield (
            "pairs",
            f"of {most} {design.groups} groups by {design.groups}: noise {show_figure(noise.magnitude)} on average in each cell"
            f"{_LESS_TOGETHER if design.in_blocks else ''}",
        )
        yield from _describe_group_means(design)


def _describe_group_means(design: Design) -> Iterator[tuple[str, str]]:
    """Yield how far noise moves the means of small and large groups."""
    sizes = [people for part in _PARTS if (people := design.records // part)]
    off = max(
        (design.group_sum_deviation(pair, place) for pair in design.pairs for place in pair if not design.columns[place].nominal),
        default=None,
    )
    if off is not None and sizes:
        each = (POLICY("group_means.mean", people=format_count(people), off=show_figure(off / people)) for people in sizes)
        yield "group means", POLICY("group_means.known", means=join_names(each))
