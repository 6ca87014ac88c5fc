"""dp-mdav: clusters of all noise columns together, along an order of single records, and noise on their centroids."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.accounting.scales import mean_magnitude
from release_pipeline.mechanisms.catalogue.entries import STATISTICS
from release_pipeline.mechanisms.clusters.curve import MAX_COLUMNS
from release_pipeline.mechanisms.vectors.vectors import (
    Insensitive,
    MdavSpec,
    check_vector_sizes,
    find_reach,
    public_scales,
    worst_scales,
)
from release_pipeline.policy.families.base import (
    APPEARS,
    KEPT_COLUMNS,
    NOTHING_ADDS_UP,
    ColumnPlan,
    Family,
    Plan,
    refuse_generalised,
    together_words,
)
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import DpMdavOptions, MdavOptions, split_epsilon
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.values.formats import name_some
from release_pipeline.policy.values.text import Problem
from release_pipeline.sentences import POLICY


class VectorFamily(Family[DpMdavOptions]):
    """Clusters of all columns together, and noise."""

    single_records = "individual differential privacy does not cover groups."

    def find_contradictions(self, parts: Parts, protect: DpMdavOptions) -> Iterator[Problem]:
        """Yield a problem for clusters that are too small, too many columns for a curve, and kept columns if the table is
        claimed."""
        yield from refuse_generalised(parts, f"{protect.method} makes clusters of numbers and generalises no column.")
        least = STATISTICS[protect.statistic][0].least_k
        if protect.k < least:
            what = f"{protect.statistic} sums need clusters of at least {least} records."
            yield ("protect", "k"), what, f"Raise k to {least} or more, or use plain sums."
        if protect.order == "hilbert" and len(parts.noise_columns) > MAX_COLUMNS:
            many = len(parts.noise_columns)
            what = f"a hilbert curve goes through {MAX_COLUMNS} columns at the most, and {many} have do: noise."
            yield ("protect", "order"), what, "Use order: corner, or fewer columns."
        if protect.scope == "table":
            for name in parts.kept_columns:
                what = "a column that is kept as it is has no bound, and the claim would be for the whole table."
                yield ("columns", name, "do"), what, "Mask or drop it, or claim scope: centroid."

    def describe_protected(self, protect: DpMdavOptions) -> tuple[str, str]:
        """Return what is protected only for single records, and why."""
        return f"{protect.method} with {protect.statistic} sums", self.single_records

    def check_noise(self, parts: Parts, protect: DpMdavOptions) -> Iterator[Problem]:
        """Yield noise that could leave 64 bits, for each column and for all together."""
        yield from super().check_noise(parts, protect)
        if all(share.nano for share in split_epsilon(protect, parts.noise_columns).values()):
            least = STATISTICS[protect.statistic][0].least_k
            yield from check_together(parts, protect.cluster(parts.noise_columns), least_k=least)

    def check_suppression(self, parts: Parts, protect: DpMdavOptions) -> Iterator[Problem]:
        """Yield a problem if anything is to be suppressed."""
        if parts.suppress is not None and isinstance(parts.suppress, protect.suppression):
            what = f"{protect.method} suppresses nothing: which records were dropped would be covered by no claim."
            yield ("suppress",), what, "Remove it."
        else:
            yield from super().check_suppression(parts, protect)

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Yield the noise of each column: exact for plain sums, whose scales are public; the worst over all data (`worst_scales`)
        for trimmed ones."""
        protect = self.of(policy)
        grids = [column.exact_grid for column in policy.noise_columns.values()]
        exact = protect.statistic == "plain"
        if clusters is None and protect.scope == "table":
            yield from (ColumnPlan(name, part, None, None, not exact) for name, part in policy.column_epsilon.items())
            return
        spec, widths = protect.cluster(policy.noise_columns), [grid.width for grid in grids]
        if exact or protect.scope == "centroid":
            noise = [mean_magnitude(t) / protect.k for t in public_scales(widths, spec, clusters=clusters or 1)]
        else:
            sizes = 2 * protect.k - 1  # the largest cluster; the mean noise of a centroid is the scale over the size
            noise = [t / sizes for t in worst_scales(widths, spec, clusters=clusters or 1)]
        for (name, part), grid, amount in zip(policy.column_epsilon.items(), grids, noise, strict=True):
            unit = policy.noise_columns[name].noise_unit
            yield ColumnPlan(name, part, amount * float(grid.step), amount / grid.width, not exact, counted_in=unit)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Refuse so many rows if sums and noise of all columns together might not fit."""
        check_vector_rows(policy, self.of(policy).cluster(policy.noise_columns), rows)

    def find_factor(self, policy: Policy, clusters: int) -> Fraction:
        """Return the factor: a chain changes up to p plain centroids by what the order allows (`order_reach`), since sum_j sum_a
        |change| eps_a / W_a <= epsilon reach."""
        widths = [column.exact_grid.width for column in policy.noise_columns.values()]
        return find_reach(widths, self.of(policy).cluster(policy.noise_columns), clusters=clusters)

    def describe_claim(self, policy: Policy) -> str:
        """Return the epsilon of a release with what it covers."""
        if policy.protect.scope != "table":
            return super().describe_claim(policy)
        short, columns = policy.claim.definition.short, together_words(policy)
        epsilon, parts = format_nano(policy.epsilon or 0), self.describe_parts(policy)
        return POLICY("claim.whole_table", epsilon=epsilon, definition=short, columns=columns, parts=parts)

    def describe_method(self, policy: Policy) -> str:
        """Return the name of the method in a sentence, with the order that clusters are cut from."""
        return POLICY("method.order", summary=policy.method.summary, order=self._describe_order(policy))

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield the order, the bounds of wider scopes, and what is not covered."""
        policy = plan.policy
        yield "order", self._describe_order(policy)
        if policy.protect.scope == "centroid":
            table = self.describe_table(policy, plan.clusters, plan.rows)
            yield "wider", f"column lists: {self.describe_lists(plan)}; {table}"
        if policy.covers_table:
            yield "not covered", APPEARS
            return
        yield "not covered", KEPT_COLUMNS
        yield "", APPEARS

    def describe_before(self, policy: Policy) -> str:
        """Return that values are moved into the domain after the noise."""
        return ", before the domain is restored"

    def view_options(self, policy: Policy) -> dict[str, str | None]:
        """Return the options that the plan names for scripts, by their key there."""
        protect = self.of(policy)
        return {"order": protect.order, "statistic": protect.statistic}

    def _describe_order(self, policy: Policy) -> str:
        protect = self.of(policy)
        words, sums = POLICY.read_section("order")[protect.order], POLICY.read_section("sums")[protect.statistic]
        return POLICY("method.ordered", order=protect.order, words=words, sums=sums)


def check_together(parts: Parts, spec: Insensitive | MdavSpec, *, least_k: int) -> Iterator[Problem]:
    """Yield sums and noise of the columns together that could leave 64 bits, for the fewest rows that the policy allows."""
    try:
        widths = [column.exact_grid.width for column in parts.noise_columns.values()]
    except ReleasePipelineError:
        return  # the column's own check reports it
    if not widths or spec.k < least_k:
        return
    try:
        check_vector_sizes(widths, spec, clusters=max(parts.least_rows(spec.k) // spec.k, 1))
    except ReleasePipelineError as error:
        yield ("protect",), error.what, error.remedy


def check_vector_rows(policy: Policy, spec: Insensitive | MdavSpec, rows: int) -> None:
    """Refuse so many rows if sums or noise of the columns together might not fit."""
    widths = [column.exact_grid.width for column in policy.noise_columns.values()]
    check_vector_sizes(widths, spec, clusters=policy.count_clusters(rows) or 1)


# mdav: k-anonymity by clusters of similar records, all columns together, whose centroids are exact.


class MdavFamily(Family[MdavOptions]):
    """Clusters, and no noise: centroids are exact, so that masked quasi-identifiers make groups, too."""

    single_records = "a cluster counts records, and k of them may be fewer than k people."
    makes_groups_of_masked = True

    def find_contradictions(self, parts: Parts, protect: MdavOptions) -> Iterator[Problem]:
        """Yield a problem for every generalised column."""
        yield from refuse_generalised(parts, f"{protect.method} makes clusters of numbers and generalises no column.")

    def check_suppression(self, parts: Parts, protect: MdavOptions) -> Iterator[Problem]:
        """Yield a problem if records are to be dropped from clusters in random parts."""
        if parts.count > 1 and parts.suppress is not None and isinstance(parts.suppress, protect.suppression):
            what = f"{protect.method} drops whole clusters, and those of random parts are not known before budget is spent."
            yield ("suppress",), what, "Remove it, or remove protect.partitions."
        else:
            yield from super().check_suppression(parts, protect)

    def check_noise(self, parts: Parts, protect: MdavOptions) -> Iterator[Problem]:
        """There is none; sums could leave 64 bits all the same."""
        yield from check_together(parts, protect.cluster(parts.noise_columns), least_k=1)

    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Yield nothing: there is no noise."""
        yield from (ColumnPlan(name, None, 0.0, 0.0, False) for name in policy.noise_columns)

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Refuse so many rows if sums of all columns together might not fit."""
        check_vector_rows(policy, self.of(policy).cluster(policy.noise_columns), rows)

    def describe_claim(self, policy: Policy) -> str:
        """Return how many records share their masked values."""
        return POLICY("claim.mdav", k=policy.protect.k, columns=together_words(policy), parts=self.describe_parts(policy))

    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield what is not covered."""
        for sentence in self.list_uncovered(plan.policy):
            yield "not covered", sentence
        yield "series", NOTHING_ADDS_UP

    def list_uncovered(self, policy: Policy) -> Iterator[str]:
        """Yield a sentence for each thing that the claim does not protect."""
        yield POLICY("uncovered.cluster")
        yield POLICY("uncovered.agreeing")
        if policy.kept_columns:
            yield POLICY("uncovered.kept_beside_clusters", columns=name_some(policy.kept_columns))
        yield POLICY("uncovered.series")
        yield POLICY("uncovered.facts")
