"""k-epsilon: classes of records that share their generalised quasi-identifiers, and noise inside each class."""

from __future__ import annotations

import math
from collections.abc import Iterator

from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.accounting.scales import domain_scale, mean_magnitude
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy, find_ambiguous_label
from release_pipeline.mechanisms.columns.class_noise import KEPT
from release_pipeline.policy.families.base import NOTHING_ADDS_UP, ColumnPlan, Family, Plan, epsilon_words, tell_copies
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import KEpsilonOptions
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import SuppressClasses
from release_pipeline.policy.hierarchies import Intervals, Listed
from release_pipeline.policy.kinds import GeneraliseColumn, MissingCategory
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.values.formats import name_some
from release_pipeline.policy.values.text import Path, Problem
from release_pipeline.sentences import POLICY

MAX_NODES = 1_000_000  # in the lattice of levels
GROUPINGS = {
    "ola": "one level of every hierarchy for all records, the one that loses least (OLA09)",
    "mondrian": "classes are cut in two as long as both parts are large enough, each with labels of its own (MON06)",
}


class ClassFamily(Family[KEpsilonOptions]):
    """Groups by generalised quasi-identifiers, of which nothing is released raw."""

    single_records = "a class counts records, and k of them may be fewer than k people."
    part_words = "each grouped on its own"

    def find_contradictions(self, parts: Parts, protect: KEpsilonOptions) -> Iterator[Problem]:
        """Something to make classes from, nothing that would break them, and hierarchies that the grouping can take."""
        if parts.complete and not parts.generalised_columns:
            what = "no column has do: generalise, so there are no classes."
            yield ("columns",), what, "Declare the hierarchy of at least one quasi-identifier."
        for name, column in parts.kept_columns.items():
            if column.role in RECOGNISED:
                what = f"{protect.method} releases no quasi-identifier as it is: with it groups would be smaller than k."
                yield ("columns", name, "do"), what, "Generalise it."
        mondrian = protect.grouping == "mondrian"
        if mondrian and protect.metric is not None:
            yield ("protect", "metric"), "mondrian cuts by width and chooses by no metric.", "Remove metric."
        for name, column in parts.generalised_columns.items():
            yield from _check_hierarchy(name, column, mondrian=mondrian)
        nodes = math.prod(column.hierarchy.levels for column in parts.generalised_columns.values())
        if not mondrian and nodes > MAX_NODES:
            what = f"the hierarchies have {nodes:,} combinations of levels, and ola goes through {MAX_NODES:,} at the most."
            yield ("protect", "grouping"), what, "Use fewer columns or levels, or mondrian."

    def check_suppression(self, parts: Parts, protect: KEpsilonOptions) -> Iterator[Problem]:
        """Yield what is wrong with the shares that the grouping and the noise may drop."""
        rule = parts.suppress
        if rule is not None and not isinstance(rule, SuppressClasses):
            what = f"the classes of {protect.method} have k records already; quasi_groups_below is for other methods."
            yield ("suppress", "quasi_groups_below"), what, "Write grouping_at_most, confidence and at_most."
        elif rule is not None and protect.grouping == "mondrian" and rule.grouping_at_most:
            what = "mondrian cuts only where both parts are large enough, and drops nobody."
            yield ("suppress", "grouping_at_most"), what, "Remove it."

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Yield the noise of each column in a class as wide as the domain; every record has separate noise."""
        for name, column in policy.noise_columns.items():
            grid, epsilon = column.exact_grid, policy.column_epsilon[name]
            step = float(grid.step)
            noise = mean_magnitude(domain_scale(grid.width, epsilon)) * step
            yield ColumnPlan(name, epsilon, noise, noise / (grid.width * step), True, counted_in=column.noise_unit)

    def describe_claim(self, policy: Policy) -> str:
        """Return k, and the epsilon within each class, as text."""
        short, parts = policy.claim.definition.short, self.describe_parts(policy)
        return POLICY("claim.classes", k=policy.protect.k, amount=epsilon_words(policy), definition=short, parts=parts)

    def describe_parts(self, policy: Policy) -> str:
        """Return what random parts mean for the claim; empty without any."""
        if policy.parts == 1:
            return super().describe_parts(policy)
        return POLICY("claim.grouped_parts", parts=policy.parts)

    def state_parts(self, policy: Policy) -> str:
        """Return what the formal statement adds if there are several random parts."""
        return POLICY("statement.parts_of_classes")

    def explain_parts(self, policy: Policy) -> Iterator[str]:
        """Yield further sentences of the plan on random parts."""
        yield "a class is all records with the same labels, of whatever parts: noise is as large as it is wide"

    def before_claim(self, policy: Policy) -> Iterator[tuple[str, str]]:
        """Yield how classes are made."""
        protect = self.of(policy)
        by = f", least by {protect.chosen_metric}" if protect.grouping == "ola" else ""
        yield "grouping", f"{protect.grouping}: {GROUPINGS[protect.grouping]}{by}"

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield how suppression changes the claim, and what is not covered."""
        yield from (("", words) for words in self._state_kept(plan.policy))
        for sentence in self.list_uncovered(plan.policy):
            yield "not covered", sentence
        yield "series", NOTHING_ADDS_UP

    def _state_kept(self, policy: Policy) -> Iterator[str]:
        """Yield how the claim changes if records are dropped for standing out; nothing if none are."""
        protect = self.of(policy)
        if not _drops_after_noise(policy):
            return
        twice = format_nano(KEPT * protect.epsilon.nano)
        yield (
            f"Epsilon is of the numbers as they are drawn. That a record is kept, and released with these numbers, is covered "
            f"with {KEPT} times epsilon, {twice}, for two records of a class: whether a class keeps k records depends on the "
            "noise of the others, too."
        )

    def list_uncovered(self, policy: Policy) -> Iterator[str]:
        """Yield a sentence for each thing that the claim does not protect."""
        yield POLICY("uncovered.class")
        if policy.kept_columns:
            yield POLICY("uncovered.kept_in_class", columns=name_some(policy.kept_columns))
        yield from tell_copies(policy)
        if _drops_after_noise(policy):
            yield POLICY("uncovered.dropped")
        if policy.cut_columns:
            yield POLICY("uncovered.ends")
        yield POLICY("uncovered.series")
        yield POLICY("uncovered.facts")

    def view_options(self, policy: Policy) -> dict[str, str | None]:
        """Return the options that the plan names for scripts, by their key there."""
        return {"grouping": self.of(policy).grouping}


def _drops_after_noise(policy: Policy) -> bool:
    return policy.suppress is not None and policy.suppress.confidence is not None


def _check_hierarchy(name: str, column: GeneraliseColumn, *, mondrian: bool) -> Iterator[Problem]:
    here: Path = ("columns", name, "hierarchy")
    spec, missing = column.hierarchy, column.missing_entry
    if isinstance(spec, Intervals):
        if mondrian and spec.intervals is not None:
            what = "mondrian cuts numbers where the data ask for it, not at declared intervals."
            yield (*here, "intervals"), what, "Remove intervals; domain, grid and outside are enough."
        elif not mondrian and spec.intervals is None:
            yield here, "ola needs the intervals that the numbers become.", "Add them, like intervals: [5, 10, 20]."
        if column.why is None:
            yield ("columns", name), "'why' is missing: where does the domain come from?", "Say it in a few words."
        if column.reasons and mondrian:
            what = "mondrian cuts numbers, and a missing one has no place among them."
            at = (*here[:2], "codes" if column.codes else "missing")
            yield at, what, "Use missing: fail and fill the source by a rule of your own, or use ola."
        elif isinstance(column.missing, MissingCategory) and missing is not None and spec.may_release(missing):
            yield (*here[:2], "missing"), "the category for missing entries reads like a number.", "Choose a word."
        return
    if isinstance(spec, Listed):
        if isinstance(column.missing, MissingCategory) and not column.codes and missing not in spec.values:
            what = "the category for missing entries is not among the hierarchy's values."
            yield (*here[:2], "missing"), what, "Add it to them, with its labels."
        if mondrian and len({row[-1] for row in spec.rows}) > 1:
            what = "mondrian begins with everybody in one class, so the last level must be one label."
            yield here, what, "Add a level with * for all values."
        twice = find_ambiguous_label(Hierarchy.of(column.listed_rows)) if mondrian else None
        if twice is not None:
            what = f"'{twice}' stands for different values on two levels, which mondrian may release side by side."
            yield here, what, "Give the levels labels of their own."
    elif isinstance(column.missing, MissingCategory) and missing is not None and spec.may_release(missing):
        what = "the category for missing entries reads like one of the hierarchy's labels."
        yield (*here[:2], "missing"), what, "Choose a word."
