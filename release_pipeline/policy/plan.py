"""What a policy will do, before any data is touched: the claim in words, epsilon per column, how large the noise can be.

Everything here follows from declared facts (domain, grid, k, epsilon, the least number of rows) and may be public. Where the
scales depend on the data, the worst case over all data is named, not what these data would get.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

import numpy as np

from release_pipeline.policy.atoms import keeps_atoms, list_atoms, warn_of_atoms
from release_pipeline.policy.documents import OPTIONAL, Exactly, Hash, to_json
from release_pipeline.policy.loss import (
    count_clusters,
    depends_on_records,
    release_loss,
    share_of_parts,
    table_is_covered,
    wider_bound,
)
from release_pipeline.policy.model import (
    Column,
    DropColumn,
    GeneraliseColumn,
    KeepColumn,
    NoiseColumn,
    Person,
    Policy,
    Protect,
    ProtectAlike,
    ProtectClasses,
    ProtectVectors,
    Suppress,
    SuppressClasses,
)
from release_pipeline.policy.scalars import decimal_text
from release_pipeline.policy.statements import SCALES_FIXED
from release_pipeline.privacy import Epsilon
from release_pipeline.privacy.amplification import amplified, prs20_bound
from release_pipeline.privacy.budget import format_nano
from release_pipeline.privacy.catalogue import find_method
from release_pipeline.privacy.class_noise import KEPT, epsilon_for
from release_pipeline.privacy.figures import count_of, percent, show_figure
from release_pipeline.privacy.methods import check_sizes
from release_pipeline.privacy.scales import PLAIN, mean_magnitude
from release_pipeline.privacy.sensitivity import scales_for
from release_pipeline.privacy.vectors import Insensitive, check_vector_sizes, public_scales, worst_scales

DEFINITION_NAME = {
    "dp": "eps-DP",
    "idp": "eps-iDP (individual differential privacy)",
    "k-epsilon": "(k,eps)-anonymity: stochastic indistinguishability within a class; not differential privacy",
    "k-anonymity": "k-anonymity on the masked columns; not differential privacy",
}
GROUPS = {
    "dp": "; neighbours differ in one record; epsilon is for all the records that a person may have, and for g people at most g "
    "times that",
    "idp": "; neighbours differ in one record; groups are not covered",
    "k-anonymity": "; groups of people are not covered",
}
NO_NOISE = "no noise, and not differential privacy: clusters depend on the data, and centroids are exact"
NOT_DP = "not differential privacy: classes, noise scales and suppression depend on the data"
_SHORT_NAME = {"dp": "DP", "idp": "iDP", "k-epsilon": "(k,eps)-anonymity", "k-anonymity": "k-anonymity"}
SOME = 12
WANTED = (Decimal("0.01"), Decimal("0.05"), Decimal("0.1"))  # shares of a domain, for which `check` names the epsilon
METHOD_NAME = {
    "laplace": "Laplace noise on every record",
    "dp-um": "individual ranking in clusters of k, noise for the whole domain (IR16, IDP24 Alg. 1)",
    "idp-ls": "individual ranking in clusters of k, noise by local sensitivity (IDP24 Prop. 8)",
    "idp-cbls": "individual ranking in clusters of k, trimmed means, noise by cluster sensitivity (IDP24 Prop. 9)",
    "dp-mdav": "clusters of k along an order of single records, all columns together, noise on their centroids (KDP13)",
    "mdav": "clusters of k to 2k-1 alike records, all columns together, replaced by their centroids, without noise (DT05)",
    "k-epsilon": "classes of k records or more that share their generalised quasi-identifiers, noise inside each class (KEA18)",
}
GROUPING_NAME = {
    "ola": "one level of every hierarchy for all records, the one that loses least (OLA09)",
    "mondrian": "classes are cut in two as long as both parts are large enough, each with labels of its own (MON06)",
}


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One noise column: its epsilon, and the mean absolute noise of a released value before clamping and consistency.

    `noise` is exact (for a cluster of k) when `worst_case` is false, else an upper bound; None when the bound needs the number
    of rows. `share` is the noise as a share of the domain's width.
    """

    name: str
    epsilon: Epsilon | None
    noise: float | None
    share: float | None
    worst_case: bool

    @property
    def noise_words(self) -> str:
        """How large the noise is."""
        if self.noise is None:
            return "depends on the number of rows"
        return f"{'at most ' if self.worst_case else ''}{show_figure(self.noise)}"

    @property
    def share_words(self) -> str:
        """The same, and what it is of the domain."""
        return self.noise_words if self.share is None else f"{self.noise_words} ({self.share:.1%} of the domain)"


@dataclass(frozen=True, slots=True)
class Plan:
    """The claim of a release, its reach, and each column's part."""

    policy: Policy
    rows: int | None
    columns: tuple[ColumnPlan, ...]

    @property
    def clusters(self) -> int | None:
        """How many rank clusters `rows` records make."""
        return count_clusters(self.policy, self.rows)


def make_plan(policy: Policy, *, rows: int | None = None) -> Plan:
    """The plan of one release of `policy` for `rows` records (default: the least that the policy lets through)."""
    rows = rows if rows is not None else policy.gates.min_rows
    clusters = count_clusters(policy, rows)
    if isinstance(policy.protect, ProtectAlike):
        return Plan(policy, rows, tuple(ColumnPlan(name, None, 0.0, 0.0, False) for name in policy.noise_columns))
    if isinstance(policy.protect, ProtectVectors):
        return Plan(policy, rows, tuple(_plan_vectors(policy, policy.protect, clusters)))
    parts = (
        _plan_column(policy, name, column, policy.column_epsilon[name], clusters) for name, column in policy.noise_columns.items()
    )
    return Plan(policy, rows, tuple(parts))


def check_rows(policy: Policy, rows: int) -> None:
    """Refuse so many rows if noise for them might not fit, as a release of them would: by public facts, before any data."""
    clusters = count_clusters(policy, rows)
    if policy.vectors is not None:
        check_vector_sizes([c.exact_grid.width for c in policy.noise_columns.values()], policy.vectors, clusters=clusters or 1)
    if not isinstance(policy.protect, Protect):
        return
    method, k, scope = policy.protect.method, policy.protect.k, policy.protect.scope
    for name, column in policy.noise_columns.items():
        share, records = policy.column_epsilon[name], -(-rows // policy.parts)
        check_sizes(method=method, k=k, grid=column.exact_grid, epsilon=share, scope=scope, records=records)


def describe_claim(policy: Policy) -> str:
    """The epsilon of a release with what it is of: never a number alone.

    "epsilon 2 in all (0.5 for each of 4 columns), iDP, for the column lists; whole table: not bounded"
    """
    parted = describe_parts(policy)
    if policy.epsilon is None:
        return f"k {policy.protect.k}, k-anonymity on {_together(policy)}{parted}; {NO_NOISE}"
    parts = policy.column_epsilon
    total = format_nano(policy.epsilon)
    if len(parts) == 1:
        split = f"all for the column {next(iter(parts))}"
    elif len({part.nano for part in parts.values()}) == 1:
        split = f"{next(iter(parts.values()))} for each of {len(parts)} columns"
    else:
        split = ", ".join(f"{name} {part}" for name, part in parts.items())
    if policy.records_per_person > 1:
        split += f"; times {policy.records_per_person} records per person"
    if isinstance(policy.protect, ProtectClasses):
        return f"k {policy.protect.k} and {_epsilon_words(total, split)}, (k,eps)-anonymity, within each class{parted}; {NOT_DP}"
    if policy.protect.scope == "table":
        return f"epsilon {total} in all, {_SHORT_NAME[policy.definition]}, for the whole table ({_together(policy)}){parted}"
    covers = "for the column lists" if policy.protect.scope == "column" else "for each centroid on its own"
    return f"{_epsilon_words(total, split)}, {_SHORT_NAME[policy.definition]}, {covers}{parted}; {describe_table(policy)}"


def _epsilon_words(total: str, split: str) -> str:
    return f"epsilon {total} in all ({split})"


def _together(policy: Policy) -> str:
    names = list(policy.noise_columns)
    return f"the column {names[0]}" if len(names) == 1 else f"all {len(names)} masked columns together"


def describe_method(policy: Policy) -> str:
    """The method in words, with the order that clusters are cut from where there is one."""
    words = METHOD_NAME[policy.protect.method]
    return f"{words}; order {_order_words(policy, policy.protect)}" if isinstance(policy.protect, ProtectVectors) else words


def describe_parts(policy: Policy) -> str:
    """What random parts mean for the claim: nothing where there are none."""
    if policy.parts == 1:
        return ""
    if isinstance(policy.protect, ProtectClasses) and not policy.publishes_parts:
        return f", grouped in {policy.parts} random parts of the records"
    if policy.publishes_parts:
        return f", in each of {policy.parts} releases of one random part of the records: every record is in one of them"
    return f", in {policy.parts} random parts of the records, each masked on its own"


def describe_table(policy: Policy, clusters: int | None = None, rows: int | None = None) -> str:
    """What is known of the widest scope, everything that a reader of the table sees; a number where that of the rows is known."""
    if not table_is_covered(policy):
        return "whole table: not bounded"
    if policy.protect.method != "dp-mdav" or policy.protect.scope == "table":
        return "whole table: covered with the same epsilon"
    if rows is None or clusters is None or policy.epsilon is None:
        return "whole table: at most the number of clusters (rows / k) times epsilon"
    bound = format_nano(wider_bound(policy, policy.epsilon, records=rows))
    return f"whole table: at most {bound} for {rows:,} rows ({count_of(clusters, 'cluster')} that one change may move)"


def describe_plan(plan: Plan, *, width: int = 110) -> Iterator[str]:
    """The plan in lines for a person."""
    for label, text in _paragraphs(plan):
        yield from textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)
    yield ""
    yield from _column_table(plan)
    yield ""
    for label, text in _after_masking(plan.policy):
        yield from textwrap.wrap(text, width, initial_indent=f"{label:<12}", subsequent_indent=" " * 12)


def _paragraphs(plan: Plan) -> Iterator[tuple[str, str]]:
    policy = plan.policy
    protect = policy.protect
    yield "policy", f"{policy.policy} (population {policy.population}, steward {policy.steward})"
    yield "hash", policy.canonical_hash()
    yield "source", policy.source.words + _release_words(policy)
    yield "person", _person_words(policy)
    yield "method", f"{protect.method}: {METHOD_NAME[protect.method]}" + (f", k = {protect.k}" if protect.k else "")
    yield from _part_paragraphs(plan)
    if isinstance(protect, ProtectClasses):
        yield from _class_paragraphs(plan, protect)
        return
    yield "definition", DEFINITION_NAME[policy.definition] + GROUPS[policy.definition]
    if policy.definition == "idp":
        yield "scales", SCALES_FIXED
    yield "claim", describe_claim(policy)
    if isinstance(protect, ProtectAlike):
        for sentence in not_covered_words(policy):
            yield "not covered", sentence
        yield "series", "nothing adds up over releases, so that caps count them"
        return
    if isinstance(protect, ProtectVectors):
        yield "order", _order_words(policy, protect)
        if protect.scope == "centroid":
            yield "wider", f"column lists: {_column_bound(plan)}; {describe_table(policy, plan.clusters, plan.rows)}"
        if table_is_covered(policy):
            yield "not covered", APPEARS
            return
        yield "not covered", "the columns that are kept as they are, and with them the whole table"
        yield "", APPEARS
        return
    if protect.scope == "centroid":
        yield "wider", f"column lists: {_column_bound(plan)}"
    if not table_is_covered(policy):
        yield (
            "not covered",
            "the columns that are kept as they are, and with them the whole table"
            if protect.method == "laplace"
            else "the whole table: equal values, and the columns kept beside them, show which records were ranked together, "
            "and that pattern follows from the data",
        )
    yield "", APPEARS
    yield "consistency", _consistency_words(policy)
    for name, column in policy.noise_columns.items():
        if column.atoms:
            yield "atoms", f"{name}: {list_atoms(column)}{_atom_words(policy)}"
    for warning in warn_of_atoms(policy, plan.rows):
        yield "warning", warning
    if policy.clamps:
        yield "released", "inside the declared domain, on the declared grid"
    else:
        yield (
            "clamp",
            "no: released values stay where the noise put them, and may lie outside their domain; the claim is the same",
        )


def _consistency_words(policy: Policy) -> str:
    if policy.consistency == "none":
        return "none"
    return (
        "isotonic: the order of the clusters is restored after the noise. It costs no epsilon and makes errors smaller. It takes "
        "means over neighbouring clusters, which moves what many records share (zeros, codes, ages in round numbers) unless the "
        "column declares it: atoms: [0]"
    )


def _atom_words(policy: Policy) -> str:
    if policy.consistency == "none":
        return ": no order is restored that could move them"
    if keeps_atoms(policy):
        return ": clusters that are exactly there stay there when order is restored; noise can bring others"
    return ": blocks that the noise does not let tell from them are put there when order is restored"


def _part_paragraphs(plan: Plan) -> Iterator[tuple[str, str]]:
    policy = plan.policy
    if policy.parts == 1:
        return
    sizes = f" of {plan.rows // policy.parts:,} to {-(-plan.rows // policy.parts):,} rows" if plan.rows is not None else ""
    of_class = isinstance(policy.protect, ProtectClasses)
    each = "each grouped on its own" if of_class else "each masked on its own: one change is in one part"
    yield "parts", f"{policy.parts} random parts{sizes} by the number of the row, {each}"
    if of_class and not policy.publishes_parts:
        yield "", "a class is all records with the same labels, of whatever parts: noise is as large as it is wide"
    if not policy.publishes_parts:
        return
    yield "", "a release publishes one of them; the source must be the same for all, and the series costs what one release costs"
    if policy.epsilon is not None and policy.adds_up:
        of_rows = f" (for {plan.rows:,} rows)" if plan.rows is not None and policy.protect.amplification is not None else ""
        yield "charged", "; ".join(charge_words(policy, plan.rows)) + of_rows


def charge_words(policy: Policy, rows: int | None) -> Iterator[str]:
    """What is charged after so many of the parts of a table of so many rows: with amplification what BBG18 proves, and beside it
    PRS20's bound."""
    nano = policy.epsilon or 0
    if policy.protect.amplification is None:
        yield f"{format_nano(nano)} with the first part, and nothing with the {policy.parts - 1} others"
        return
    for done in _some_of(policy.parts):
        if done == policy.parts:
            yield f"after all of them: {format_nano(nano)}"
            break
        share = share_of_parts(policy, done, rows)
        older = show_figure(prs20_bound(nano, share) or 0)
        yield f"after {done} of {policy.parts}: {format_nano(amplified(nano, share))} (PRS20 Theorem 2: {older})"


def _some_of(parts: int) -> list[int]:
    return sorted({1, 2, -(-parts // 2), parts})


def _order_words(policy: Policy, protect: ProtectVectors) -> str:
    how = {
        "corner": "by the distance from the lower corner of the declared domain (the paper's)",
        "hilbert": "along a Hilbert curve through the declared domain",
    }
    logs = [name for name, column in policy.noise_columns.items() if column.transform == "log"]
    seen = f"; of the logarithm of {name_some(logs)}" if logs else ""
    sums = {"plain": "plain sums", "trimmed": "sums with the least and the greatest value of each column drawn in"}
    return f"{protect.order}: {how[protect.order]}{seen}; {sums[protect.statistic]}"


def _class_paragraphs(plan: Plan, protect: ProtectClasses) -> Iterator[tuple[str, str]]:
    policy = plan.policy
    by = f", least by {protect.chosen_metric}" if protect.grouping == "ola" else ""
    yield "grouping", f"{protect.grouping}: {GROUPING_NAME[protect.grouping]}{by}"
    if protect.l is not None:
        yield "l", f"every class has at least {protect.l} different values of {' and of '.join(policy.kept_columns)}"
    yield "definition", f"{DEFINITION_NAME['k-epsilon']}; groups of people are not covered"
    yield "claim", describe_claim(policy)
    yield from (("", words) for words in kept_words(policy))
    for sentence in not_covered_words(policy):
        yield "not covered", sentence
    yield "series", "nothing adds up over releases, so that caps count them"
    yield from _wanted(plan)


def _wanted(plan: Plan) -> Iterator[tuple[str, str]]:
    """The epsilon in all that keeps the noise of a column at some share of its domain, whatever the data: for a class as wide as
    the domain, and for one a tenth as wide."""
    policy = plan.policy
    assert isinstance(policy.protect, ProtectClasses)  # noqa: S101  for the type checker
    for name, column in policy.noise_columns.items():
        grid = column.exact_grid
        share = policy.protect.epsilon.nano / policy.column_epsilon[name].nano
        shares = ", ".join(percent(wanted) for wanted in WANTED)
        wide, narrow = (
            ", ".join(
                show_figure(share * _epsilon_for_noise(grid.width // part, float(wanted) * grid.width)) for wanted in WANTED
            )
            for part in (1, 10)
        )
        yield (
            "wanted",
            f"{name}: mean noise of {shares} of the domain needs epsilon {wide} in all for a class as wide as the domain, and "
            f"{narrow} for one a tenth as wide",
        )
        limit = policy.gates.relative_error.get(name)
        if limit is not None:
            middle = float(sum(column.domain)) / 2
            needed = _epsilon_for_noise(grid.width, float(limit) * abs(middle) / float(grid.step))
            yield (
                "",
                f"a relative error of {limit:f} at {middle:g}, the middle of the domain, needs {show_figure(needed * share)}",
            )


def _epsilon_for_noise(diameter: int, wanted: float) -> float:
    """The epsilon at which E|Z| = 1/sinh(1/t) with t = ceil(diameter/epsilon) is at most `wanted` grid units."""
    if diameter < 1 or wanted <= 0:
        return math.inf if diameter else 0.0
    found = epsilon_for(lambda epsilon: mean_magnitude(int(scales_for(np.array([diameter]), epsilon)[0])), wanted)
    return math.inf if found is None else float(found)


SERIES_OPEN = "Groups of people, such as a family, and what several releases about the same people tell together."
PUBLIC_FACTS = "How many records there are, and that they passed the declared checks: both are public."
APPEARS = "whether a release appears at all: that these data passed the checks, and are as many as they are, is public"


def describe_scopes(plan: Plan) -> Iterator[tuple[str, str]]:
    """What is known of every scope that is wider than the claim, in words: a bound from public facts, or that there is none."""
    if plan.policy.protect.scope == "table":
        return
    if not plan.policy.adds_up:
        yield "table", "not bounded"
        return
    if plan.policy.protect.scope == "centroid":
        yield "column", _column_bound(plan)
    yield "table", describe_table(plan.policy, plan.clusters, plan.rows).removeprefix("whole table: ")


def not_covered_words(policy: Policy) -> Iterator[str]:
    """What the claim does not protect, a sentence each."""
    if isinstance(policy.protect, ProtectClasses):
        yield from _not_covered_by_classes(policy)
        return
    if isinstance(policy.protect, ProtectAlike):
        yield from _not_covered_by_likeness(policy)
        return
    if policy.definition == "idp":
        yield "Groups of people, such as a family: the claim is about one record at a time."
        yield SCALES_FIXED
    if not table_is_covered(policy):
        yield (
            "The table as a whole: the columns kept beside the masked ones have no bound."
            if isinstance(policy.protect, ProtectVectors)
            else "The table as a whole: the columns kept beside the masked ones have no noise, and which of their values are in "
            "one row with which masked values is not covered."
            if policy.protect.method == "laplace"
            else "The table as a whole: equal values, and the columns kept beside them, show which records were ranked together."
        )
    if policy.kept_columns:
        yield f"The columns that are released as they are: {name_some(policy.kept_columns)}."
    if policy.suppress is not None and policy.kept_columns:
        yield "Which records were dropped or lost a cell to protect small groups: that follows from the columns kept as they are."
    yield PUBLIC_FACTS
    yield "What follows about people from the statistics themselves, whether or not their record was used."


def _not_covered_by_likeness(policy: Policy) -> Iterator[str]:
    yield "Which cluster a record is in: who knows somebody's values roughly finds the cluster, and learns its exact means."
    yield (
        "The values of a cluster whose records agree: its mean is the value of each of them. And whoever knows all records of a "
        "cluster but one computes that one from the mean."
    )
    if policy.kept_columns:
        kept = name_some(policy.kept_columns)
        yield f"The columns that are released as they are: {kept}. With them groups may be smaller than k."
    yield SERIES_OPEN
    yield PUBLIC_FACTS


def kept_words(policy: Policy) -> Iterator[str]:
    """What the claim becomes where records are dropped for standing out: nothing where none are."""
    rule, protect = policy.suppress, policy.protect
    if not isinstance(protect, ProtectClasses) or not isinstance(rule, SuppressClasses) or rule.confidence is None:
        return
    twice = format_nano(KEPT * protect.epsilon.nano)
    which = "two records of a class that agree in the kept confidential columns" if protect.l else "two records of a class"
    yield (
        f"Epsilon is of the numbers as they are drawn. That a record is kept, and released with these numbers, is covered with "
        f"{KEPT} times epsilon, {twice}, for {which}: whether a class keeps k records depends on the noise of the others, too."
    )


def _not_covered_by_classes(policy: Policy) -> Iterator[str]:
    rule = policy.suppress
    yield (
        "Which class a record is in: who knows somebody's generalised values finds the class. Within it the claim bounds what "
        "the masked numbers of one record tell."
    )
    if policy.kept_columns:
        kept = name_some(policy.kept_columns)
        yield f"The columns that are released as they are: {kept}. Where a class agrees in one, it is known of each record in it."
    if isinstance(rule, SuppressClasses) and rule.confidence is not None:
        yield (
            "Which records were dropped because they stood out, or because their class became too small by that: it is decided "
            "with the originals beside the released numbers, those of other records among them."
        )
    if policy.cut_columns:
        yield "The ends of a range: each is the exact number of one person or more in the class."
    yield SERIES_OPEN
    yield PUBLIC_FACTS


@dataclass(frozen=True, slots=True)
class ColumnView:
    """A masked column of a plan."""

    name: str
    epsilon: Annotated[Exactly | None, "its part of epsilon, for one record; null without noise"]
    noise: Annotated[float | None, "mean absolute noise of a released value; null where that depends on the number of rows"]
    noise_is_worst_case: Annotated[bool, "whether `noise` is the worst over all data; usually it is far less then"]
    noise_share: Annotated[float | None, "`noise` as a share of the declared domain"]
    atoms: Annotated[tuple[str, ...] | None, "the values that readers count, as the policy declares them"] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True, slots=True)
class BoundView:
    """What is known of a wider scope."""

    bounded: Annotated[bool, "whether anything bounds it"]
    epsilon: Annotated[Exactly | None, "the bound, from public facts; null where nothing bounds it, or the rows are not known"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanView:
    """What a policy will do, from declared facts alone."""

    policy: Annotated[str, "the name of the policy"]
    steward: Annotated[str, "who is responsible for it"]
    population: Annotated[str, "whose budget it spends"]
    hash: Annotated[Hash, "SHA-256 of its canonical form: what the officer approves"]
    method: Annotated[str, "of `protect`"]
    grouping: Annotated[str | None, "how `k-epsilon` makes classes: ola or mondrian"] = field(default=None, metadata=OPTIONAL)
    order: Annotated[str | None, "what `dp-mdav` cuts its clusters from"] = field(default=None, metadata=OPTIONAL)
    statistic: Annotated[str | None, "of `dp-mdav`: plain or trimmed"] = field(default=None, metadata=OPTIONAL)
    clamp: Annotated[str | None, "no, where released values stay where the noise put them"] = field(
        default=None, metadata=OPTIONAL
    )
    partitions: Annotated[int | None, "random parts of the records, where there are several"] = field(
        default=None, metadata=OPTIONAL
    )
    publish_parts: Annotated[bool | None, "whether each release is one of these parts"] = field(default=None, metadata=OPTIONAL)
    amplification: Annotated[str | None, "sampling, where less is charged for parts because it is secret who is in them"]
    k: Annotated[int | None, "records per cluster or class; null without"]
    definition: Annotated[Literal["dp", "idp", "k-epsilon", "k-anonymity"], "what is claimed"]
    scope: Annotated[
        Literal["centroid", "column", "table", "cluster", "class"],
        "what the claim covers: with `definition` and `epsilon` the claim",
    ]
    epsilon: Annotated[Exactly | None, "of one release, in all, for one person; null for a method without"]
    claim: Annotated[str, "the claim in words"]
    records_per_person: Annotated[int, "how many records of a release one person may have"]
    wider: Annotated[dict[str, BoundView], "what holds for wider scopes, in the same definition: `column`, `table`"]
    not_covered: Annotated[tuple[str, ...], "what the claim does not cover, a sentence each"]
    rows: Annotated[int | None, "the records that this is planned for: --rows, or the policy's min_rows; null without either"]
    warnings: Annotated[tuple[str, ...] | None, "what noise will not leave as it is, a sentence each"] = field(
        default=None, metadata=OPTIONAL
    )
    columns: Annotated[tuple[ColumnView, ...], "the masked columns"]
    kept: Annotated[tuple[str, ...], "the columns that are released as they are"]
    generalised: Annotated[tuple[str, ...], "the columns that are released coarser"]


def view_plan(plan: Plan) -> PlanView:
    """The plan for a script."""
    policy, protect = plan.policy, plan.policy.protect
    parted = policy.parts > 1
    return PlanView(
        policy=policy.policy,
        steward=policy.steward,
        population=policy.population,
        hash=policy.canonical_hash(),
        method=protect.method,
        grouping=protect.grouping if isinstance(protect, ProtectClasses) else None,
        order=protect.order if isinstance(protect, ProtectVectors) else None,
        statistic=protect.statistic if isinstance(protect, ProtectVectors) else None,
        clamp=None if policy.clamps else "no",
        partitions=policy.parts if parted else None,
        publish_parts=policy.publishes_parts if parted else None,
        amplification=protect.amplification,
        k=protect.k,
        definition=cast(Any, policy.definition),
        scope=cast(Any, protect.scope),
        epsilon=None if policy.epsilon is None else format_nano(policy.epsilon),
        claim=describe_claim(policy),
        records_per_person=policy.records_per_person,
        wider={scope: _view_bound(plan, scope) for scope in ("column", "table")},
        not_covered=tuple(not_covered_words(policy)),
        rows=plan.rows,
        warnings=tuple(warn_of_atoms(policy, plan.rows)) or None,
        columns=tuple(
            ColumnView(
                name=part.name,
                epsilon=None if part.epsilon is None else str(part.epsilon),
                noise=part.noise,
                noise_is_worst_case=part.worst_case,
                noise_share=part.share,
                atoms=tuple(decimal_text(atom) for atom in policy.noise_columns[part.name].atoms) or None,
            )
            for part in plan.columns
        ),
        kept=tuple(policy.kept_columns),
        generalised=tuple(policy.generalised_columns),
    )


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """The plan as a script reads it."""
    return to_json(view_plan(plan))


def _view_bound(plan: Plan, scope: str) -> BoundView:
    """What `release_loss` charges in a wider scope."""
    policy = plan.policy
    if not policy.adds_up or (scope == "table" and not table_is_covered(policy)):
        return BoundView(bounded=False, epsilon=None)
    if plan.rows is None and depends_on_records(policy):
        return BoundView(bounded=True, epsilon=None)
    nano = release_loss(policy, records=plan.rows or 0).of(policy.definition, scope)
    return BoundView(bounded=nano is not None, epsilon=None if nano is None else format_nano(nano))


def _plan_column(policy: Policy, name: str, column: NoiseColumn, epsilon: Epsilon, clusters: int | None) -> ColumnPlan:
    protect, grid = policy.protect, column.exact_grid
    assert isinstance(protect, Protect | ProtectClasses)  # noqa: S101  for the type checker
    k = protect.k or 1
    step = float(grid.step)
    if isinstance(protect, ProtectClasses):  # a class as wide as the domain; every record has noise of its own
        noise = mean_magnitude(int(scales_for(np.array([grid.width]), epsilon)[0])) * step
        return ColumnPlan(name, epsilon, noise, noise / (grid.width * step), True)
    spec, rule = find_method(protect.method), policy.claim.rule
    assert rule is not None  # noqa: S101  for the type checker
    magnitude = rule.mean_noise(spec.sums or PLAIN, k=k, clusters=clusters, width=grid.width, epsilon=epsilon)
    noise = None if magnitude is None else magnitude * step / k
    share = None if noise is None else noise / (grid.width * step)
    return ColumnPlan(name, epsilon, noise, share, not rule.is_public)


def _plan_vectors(policy: Policy, protect: ProtectVectors, clusters: int | None) -> Iterator[ColumnPlan]:
    """Exact for plain sums, whose scales are public; for trimmed ones the worst over all data (`worst_scales`)."""
    spec = policy.vectors
    grids = [column.exact_grid for column in policy.noise_columns.values()]
    exact = protect.statistic == "plain"
    if not isinstance(spec, Insensitive) or (clusters is None and protect.scope == "table"):
        yield from (ColumnPlan(name, part, None, None, not exact) for name, part in policy.column_epsilon.items())
        return
    widths = [grid.width for grid in grids]
    if exact or protect.scope == "centroid":
        noise = [mean_magnitude(t) / protect.k for t in public_scales(widths, spec, clusters=clusters or 1)]
    else:
        sizes = 2 * protect.k - 1  # what the bound is for; the mean noise of a centroid is the scale over the size
        noise = [t / sizes for t in worst_scales(widths, spec, clusters=clusters or 1)]
    for (name, part), grid, amount in zip(policy.column_epsilon.items(), grids, noise, strict=True):
        yield ColumnPlan(name, part, amount * float(grid.step), amount / grid.width, not exact)


def _release_words(policy: Policy) -> str:
    opened = f", opened by the timetable '{policy.cron.text}' (UTC)" if policy.cron else ""
    if policy.every:
        begins = f" from {policy.first} on" if policy.first else ""
        return f", a release for every {policy.every} that has ended{begins}{opened}"
    names = policy.release_names
    return ", released once" if names == ("once",) else f", {count_of(len(names), 'release')}: {', '.join(names)}{opened}"


def _person_words(policy: Policy) -> str:
    if not isinstance(policy.person, Person):
        return "each row is a person of its own"
    records = policy.person.records_per_release
    return f"column {policy.person.column}, at most {count_of(records, 'record')} per release"


def _column_bound(plan: Plan) -> str:
    """The public bound on the loss of a column's whole list under a claim for each centroid: from declared facts alone."""
    protect = plan.policy.protect
    if plan.policy.protect.method in ("laplace", "dp-um"):
        return "the same epsilon (the moves of one change add up to at most the domain)"
    if protect.method == "idp-ls":
        bound = format_nano(wider_bound(plan.policy, plan.policy.epsilon or 0, records=0))
        return f"at most {bound} in all (1 + ln 2 times epsilon)"
    if plan.clusters is None or plan.rows is None:
        return "at most the number of clusters (rows / k) times epsilon"
    bound = format_nano(wider_bound(plan.policy, plan.policy.epsilon or 0, records=plan.rows))
    if protect.method == "dp-mdav":
        return f"at most {bound} in all for {plan.rows:,} rows ({plan.clusters} clusters that one change may move)"
    return f"at most {bound} in all for {plan.rows:,} rows ({plan.clusters} clusters times epsilon)"


def _column_table(plan: Plan) -> Iterator[str]:
    width = max([6, *(len(name) for name in plan.policy.columns)])
    do = max(5, *(len(column.do) for column in plan.policy.columns.values()))
    yield f"{'column':<{width}}  {'role':<12}  {'do':<{do}}  what"
    by_name = {part.name: part for part in plan.columns}
    for name, column in plan.policy.columns.items():
        yield f"{name:<{width}}  {column.role:<12}  {column.do:<{do}}  {_column_words(column, by_name.get(name))}"
    if plan.policy.drop:
        more = count_of(len(plan.policy.drop), "further column")
        yield f"{'':<{width}}  {'':<12}  {'drop':<{do}}  {more}, by name"
    if any(part.worst_case for part in plan.columns):
        yield "noise: mean absolute error of a released value from noise alone, the worst over all data; usually far less"
        if plan.rows is not None and plan.policy.protect.scope in ("column", "table"):
            fewest = "the fewest that the policy lets through" if plan.rows == plan.policy.gates.min_rows else "as named"
            yield f"       for {plan.rows:,} rows, {fewest}; it grows with their number (--rows for another one)"
    elif plan.policy.protect.method != "mdav":
        yield f"noise: mean absolute error of a released value from noise alone{_before_words(plan.policy)}"


def _before_words(policy: Policy) -> str:
    if isinstance(policy.protect, ProtectVectors):
        return ", before the domain is restored"
    if policy.clamps:
        return ", before order and domain are restored"
    return ", before order is restored" if policy.consistency == "isotonic" else ""


def _column_words(column: Column, part: ColumnPlan | None) -> str:
    if isinstance(column, DropColumn):
        return "read for the rules, never released" if column.role == "identifier" else "never released"
    if isinstance(column, KeepColumn):
        return f"released as it is: one of {len(column.values)} declared values; {column.why}"
    if isinstance(column, GeneraliseColumn):
        return "; ".join(part for part in (column.hierarchy.words, column.why) if part)
    low, high = (format(bound, "f") for bound in column.domain)
    words = f"domain {low} to {high} by {column.grid:f}, {column.outside} outside; {column.why}"
    if part is None:
        return words
    if part.epsilon is None:
        return f"replaced by the mean of its cluster; {words}"
    remedy = " (name it with --rows)" if part.noise is None else ""
    return f"epsilon {part.epsilon}; noise {part.share_words}{remedy}; {words}"


def describe_suppression(policy: Policy) -> str:
    """What may be suppressed, and how much of it."""
    rule = policy.suppress
    if isinstance(rule, Suppress):
        which = "kept and masked" if isinstance(policy.protect, ProtectAlike) else "kept"
        return f"groups of {which} quasi-identifiers below {rule.quasi_groups_below}, at most {percent(rule.at_most)} of rows"
    if not isinstance(rule, SuppressClasses):
        return "nothing"
    parts = [f"records in classes that stay below k, at most {percent(rule.grouping_at_most)}"] if rule.grouping_at_most else []
    if rule.confidence is not None:
        most = f", at most {percent(rule.confidence_at_most)}" if rule.confidence_at_most is not None else ""
        parts.append(f"records that stand out in their class with {percent(rule.confidence)} confidence{most}")
    return "; ".join([*parts, f"at most {percent(rule.at_most)} of rows in all"])


def name_some(names: Iterable[str]) -> str:
    """Names in a sentence, the first dozen if there are many."""
    listed = list(names)
    more = f" and {len(listed) - SOME} more" if len(listed) > SOME else ""
    return ", ".join(listed[:SOME]) + more


def _after_masking(policy: Policy) -> Iterator[tuple[str, str]]:
    if policy.suppress:
        yield "suppress", describe_suppression(policy)
    gates = [f"at least {policy.gates.min_rows:,} rows"] if policy.gates.min_rows else []
    gates += [f"expected error of {name} at most {limit:f}" for name, limit in policy.gates.expected_error.items()]
    gates += [f"expected relative error of {name} at most {limit:f}" for name, limit in policy.gates.relative_error.items()]
    gates += _describe_clamping(policy)
    gates += [
        f"share at an atom of {name} expected to differ by at most {lim:f}" for name, lim in policy.gates.atom_share.items()
    ]
    gates += [f"expected Kolmogorov-Smirnov distance of {name} at most {limit:f}" for name, limit in policy.gates.ks.items()]
    gates += _describe_group_gates(policy)
    if policy.differencing_below > 1:
        gates.append(f"between two releases nobody joins, or at least {policy.differencing_below} people do; likewise leaving")
    yield "gates", "; ".join(gates) or "none declared"
    if policy.audit.predict:
        yield "audit", f"models learn to predict: {'; '.join(describe_target(policy, name) for name in policy.audit.predict)}"
    if policy.retain:
        yield "retain", f"intermediate tables in the vault for {policy.retain} days"
    embargo = f", not before {policy.publish.not_before:%Y-%m-%d %H:%M} UTC" if policy.publish.not_before else ""
    yield "review", f"{policy.review.reviewers} reviewers, then {' and '.join(policy.publish.formats)}{embargo}"


def _describe_clamping(policy: Policy) -> Iterator[str]:
    """How many records may be clamped, the columns with the same limit together."""
    limits = policy.clamped_at_most
    for limit in dict.fromkeys(limits.values()):
        yield f"at most {percent(limit)} of records clamped in {name_some(name for name in limits if limits[name] == limit)}"


def _describe_group_gates(policy: Policy) -> Iterator[str]:
    """The limits on groups of released quasi-identifiers, in words."""
    gates = policy.gates
    if gates.of_groups:
        yield "after the charge, on the released table"
    if gates.anonymity_k:
        yield f"groups of released quasi-identifiers of at least {gates.anonymity_k}"
    for name, least in gates.l_diversity.items():
        yield f"at least {least} different values of {name} in each group"
    for name, most in gates.t_closeness.items():
        yield f"distance of {name} in each group from all at most {most:f}"
    if gates.marketer_risk is not None:
        yield f"marketer risk at most {percent(gates.marketer_risk)}"


def describe_target(policy: Policy, name: str) -> str:
    """What a model learns to predict of a column."""
    target = policy.audit.predict[name]
    return f"{name} above {target.above:f}" if target.above is not None else f"{name} equal to '{target.equals}'"
