"""What policies, plans and losses need from a family of methods. Each family is a file next to this one; this one has the
defaults.

A family has nothing that differs between its methods: that is in their entries in `mechanisms.catalogue`, so a new method of a
known family changes nothing here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Generic, TypeVar

import numpy as np

from release_pipeline.errors import InvalidArgument, ReleasePipelineError
from release_pipeline.mechanisms import Epsilon
from release_pipeline.mechanisms.accounting.budget import format_nano, format_nano_up
from release_pipeline.mechanisms.accounting.sensitivity import scales_for
from release_pipeline.mechanisms.basis.figures import (
    count_things,
    format_count,
    format_most,
    format_percent,
    join_last,
    join_names,
    show_figure,
)
from release_pipeline.mechanisms.catalogue.spec import SAME, SCALES_FIXED
from release_pipeline.policy.file.derivations import list_leaves
from release_pipeline.policy.file.describe import list_shares
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import AnyOptions, split_epsilon
from release_pipeline.policy.file.parts import Parts
from release_pipeline.policy.file.sections import Suppress, SuppressClasses
from release_pipeline.policy.kinds.base import RECOGNISED
from release_pipeline.policy.values.formats import decimal_text, name_some
from release_pipeline.policy.values.text import Problem
from release_pipeline.sentences import POLICY

Options = TypeVar("Options", bound=AnyOptions)
APPEARS = "whether a release appears at all: that these data passed the checks, and are as many as they are, is public"
NOTHING_ADDS_UP = "nothing adds up over releases, so that caps count them"
KEPT_COLUMNS = "the columns that are kept as they are, and with them the whole table"


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """One noise column: its epsilon, and the mean absolute noise of a released value before clamping and consistency.

    `noise` is exact (for a cluster of k) when `worst_case` is false, else an upper bound; None when the bound needs the number of
    rows. `share` is the noise as a share of the domain's width. `of_counts`: how large the noise is if it is on counts of
    records, and not on single values. `unit`: the unit of `epsilon`, epsilon or rho; `counted_in`: the unit of the noise of dates
    and times, like days.
    """

    name: str
    epsilon: Epsilon | None
    noise: float | None
    share: float | None
    worst_case: bool
    of_counts: str = ""
    unit: str = "epsilon"
    counted_in: str = ""

    @property
    def noise_words(self) -> str:
        """Return how large the noise is, as text."""
        if self.of_counts:
            return self.of_counts
        if self.noise is None:
            return POLICY("noise.unknown")
        noise = f"{show_figure(self.noise)} {self.counted_in}".rstrip()
        return POLICY("noise.most", noise=noise) if self.worst_case else POLICY("noise.is", noise=noise)

    @property
    def share_words(self) -> str:
        """Return how large the noise is, and its share of the domain, as text."""
        if self.share is None:
            return self.noise_words
        return POLICY("noise.of_domain", noise=self.noise_words, share=format_percent(self.share))

    def describe(self) -> str:
        """Return a description of the noise that masks the column."""
        if self.epsilon is None:
            return self.of_counts or "replaced by the mean of its cluster"
        remedy = " (name it with --rows)" if self.noise is None and not self.of_counts else ""
        return f"{self.unit} {self.epsilon}; noise {self.share_words}{remedy}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The claim of a release, its reach, and the plan of each column. `rows_from`: where the number of rows comes from."""

    policy: Policy
    rows: int | None
    columns: tuple[ColumnPlan, ...]
    rows_from: str = ""

    @property
    def clusters(self) -> int | None:
        """Return how many clusters `rows` records make; None if the method makes none."""
        return self.policy.count_clusters(self.rows)


class Family(ABC, Generic[Options]):
    """The rules, plan, bounds and texts that a family of methods gives for a policy.

    `options`: those of its methods; `single_records`: why it protects only single records, if so; `part_words`: what is done to
    each random part of the records; `publishes_counts`: whether the noisy counts that values were made from are published with
    them; `makes_groups_of_masked`: masked quasi-identifiers make groups that may be suppressed, as kept ones do.
    """

    publishes_counts: ClassVar[bool] = False
    single_records: ClassVar[str]
    makes_groups_of_masked: ClassVar[bool] = False
    part_words: ClassVar[str] = "each masked on its own: one change is in one part"

    def __init__(self, options: type[Options]) -> None:
        self.options = options

    def of(self, policy: Policy) -> Options:
        """Return the options of the policy; those of another family are refused."""
        if not isinstance(policy.protect, self.options):
            raise InvalidArgument(f"the options of {policy.protect.method} are of another family.", where="protect")
        return policy.protect

    # rules

    @abstractmethod
    def find_contradictions(self, parts: Parts, protect: Options) -> Iterator[Problem]:
        """Yield the contradictions between the options of the method and the other parts."""

    def describe_protected(self, protect: Options) -> tuple[str, str]:
        """Return what is protected only for single records, and why: for people who may have several."""
        return protect.method, self.single_records

    def check_noise(self, parts: Parts, protect: Options) -> Iterator[Problem]:
        """Noise that could leave 64 bits with as many rows as the policy says there are at least: with more rows it is not less,
        so that no release could be made."""
        shares = split_epsilon(protect, parts.noise_columns)
        for name, share in shares.items():
            if share.nano == 0:
                yield (
                    ("protect", "epsilon"),
                    f"nothing of {'rho' if protect.by_rho else 'epsilon'} is left for '{name}'.",
                    "Use a larger epsilon or other weights.",
                )
                continue
            try:
                width = parts.noise_columns[name].exact_grid.width
            except ReleasePipelineError:
                continue  # the column's own check reports it
            yield from self.check_column(parts, protect, name, width=width, share=share)

    def check_column(self, parts: Parts, protect: Options, name: str, *, width: int, share: Epsilon) -> Iterator[Problem]:
        """Yield noise of one column that could leave 64 bits."""
        try:
            scales_for(np.array([width]), share)
        except ReleasePipelineError as error:
            yield ("columns", name, "grid"), error.what, error.remedy

    def check_suppression(self, parts: Parts, protect: Options) -> Iterator[Problem]:
        """Yield what is wrong with what may be suppressed, or that there is nothing to suppress."""
        if isinstance(parts.suppress, SuppressClasses):
            what = f"quasi_groups_below is missing: {protect.method} suppresses small groups; the rest is for k-epsilon."
            yield ("suppress",), what, "Write {quasi_groups_below: 5, at_most: 5%} with the numbers you mean."
        yield from find_groupless(parts)

    # bounds

    @abstractmethod
    def plan_columns(self, policy: Policy, clusters: int | None) -> Iterator[ColumnPlan]:
        """Yield the plan of each column: how large its noise can be."""

    def check_rows(self, policy: Policy, rows: int) -> None:
        """Refuse so many rows if noise for them might not fit, as a release of them would: by public facts, before any data."""

    def list_warnings(self, policy: Policy, rows: int | None) -> Iterator[str]:
        """Yield a sentence for each property that noise will not preserve, by declared facts and that many rows."""
        yield from ()

    def bound_lists(self, policy: Policy, nano: int, *, records: int) -> int:
        """Return the public bound on the whole list of a column's values, for a release of `nano`: a multiple that the catalogue
        has with the claim, or that widths and order of the columns determine."""
        clusters = policy.count_clusters(records) or 1
        factor = policy.claim.lists.factor
        return math.ceil(nano * (self.find_factor(policy, clusters) if factor is None else factor(clusters)))

    def find_factor(self, policy: Policy, clusters: int) -> Fraction:
        """Return the multiple that `bound_lists` takes if the claim leaves it to the family."""
        raise InvalidArgument(f"nothing says what the lists of {policy.protect.method} lose.", where="method")

    # words

    def describe_lists(self, plan: Plan) -> str:
        """Return a sentence on the public bound on the loss of a column's whole list, for a claim for each centroid: from
        declared facts only."""
        policy, lists = plan.policy, plan.policy.claim.lists
        if lists is SAME:
            return lists.text
        if not lists.counts:
            return POLICY("bound.lists", bound=self._bound_words(policy, 0), words=lists.text)
        if plan.clusters is None or plan.rows is None:
            return _bound_by_clusters(policy)
        bound, rows = self._bound_words(policy, plan.rows), format_count(plan.rows)
        return POLICY("bound.lists_of_clusters", bound=bound, rows=rows, clusters=plan.clusters, words=lists.text)

    def describe_table(self, policy: Policy, clusters: int | None = None, rows: int | None = None) -> str:
        """Return a sentence on the bound at the widest scope, everything that a reader of the table sees; a number if the number
        of rows is known."""
        return POLICY("bound.whole_table", words=self.bound_table(policy, clusters, rows))

    def bound_table(self, policy: Policy, clusters: int | None = None, rows: int | None = None) -> str:
        """Return the bound at that scope, without naming the scope."""
        if not policy.covers_table:
            return POLICY("bound.none")
        if policy.claim.lists is SAME:
            return POLICY("bound.same")
        if rows is None or clusters is None:
            return _bound_by_clusters(policy)
        bound = self._bound_words(policy, rows)
        return POLICY("bound.rows", bound=bound, rows=format_count(rows), clusters=count_things(clusters, "cluster"))

    def _bound_words(self, policy: Policy, rows: int) -> str:
        return format_nano(self.bound_lists(policy, policy.rows_epsilon or 0, records=rows) + (policy.tables_cost or 0))

    def describe_claim(self, policy: Policy) -> str:
        """Return the epsilon of a release with what it covers, and if values are swapped, what swapping promises."""
        claim = self._describe_claim_of_columns(policy)
        return claim if policy.swap is None else POLICY("claim.swapped", claim=claim, people=describe_block(policy))

    def _describe_claim_of_columns(self, policy: Policy) -> str:
        amount, definition = epsilon_words(policy), policy.claim.definition.short
        parts, table = self.describe_parts(policy), self.describe_table(policy)
        if policy.protect.scope == "column":
            return POLICY("claim.lists", amount=amount, definition=definition, parts=parts, table=table)
        return POLICY("claim.centroids", amount=amount, definition=definition, parts=parts, table=table)

    def describe_headline(self, policy: Policy) -> str:
        """Return the claim as one number for everything in a package, like "epsilon 3 at delta 0.000001 (rho 0.18506984) for
        everything in this package"; empty if there are several."""
        return ""

    def describe_method(self, policy: Policy) -> str:
        """Return the name of the method in a sentence."""
        return policy.method.summary

    def describe_parts(self, policy: Policy) -> str:
        """Return what random parts mean for the claim; empty without any."""
        if policy.parts == 1:
            return ""
        return POLICY("claim.parts", parts=policy.parts)

    def state_parts(self, policy: Policy) -> str:
        """Return what the formal statement adds if there are several random parts."""
        return POLICY("statement.parts") if policy.adds_up else ""

    def explain_parts(self, policy: Policy) -> Iterator[str]:
        """Yield further sentences of the plan on random parts."""
        yield from ()

    def before_claim(self, policy: Policy) -> Iterator[tuple[str, str]]:
        """Yield paragraphs of the plan, each with its label, between the method and its definition."""
        yield from ()

    @abstractmethod
    def after_claim(self, plan: Plan) -> Iterator[tuple[str, str]]:
        """Yield paragraphs of the plan, each with its label, after the claim."""

    def describe_before(self, policy: Policy) -> str:
        """Return what happens after the noise of the plan: ", before ..."; empty if nothing is done to noisy values."""
        return ""

    def list_uncovered(self, policy: Policy) -> Iterator[str]:
        """Yield a sentence for each thing that the claim does not protect."""
        if policy.claim.definition.fixes_scales:
            yield POLICY("uncovered.groups")
            yield SCALES_FIXED
        elif policy.protect.by_rho:  # g people lose g squared times the rho
            epsilon = format_nano_up(policy.in_epsilon(16 * (policy.epsilon or 0)), 2)
            yield POLICY("uncovered.families_by_rho", unit=policy.privacy_unit, epsilon=epsilon)
        else:
            yield POLICY("uncovered.families", unit=policy.privacy_unit, epsilon=format_nano(4 * (policy.epsilon or 0)))
        if not policy.covers_table:
            yield from _describe_blocks(policy) if policy.swap is not None else [self.describe_open_table(policy)]
        if kept := [name for name in policy.kept_columns if name not in policy.swapped_columns]:
            yield POLICY("uncovered.kept", columns=name_some(kept))
        yield from tell_copies(policy)
        lacking = [name for name, column in policy.noise_columns.items() if column.reasons]
        if lacking and not policy.covers_table:
            yield POLICY("uncovered.lacking", columns=name_some(lacking))
        if policy.suppress is not None and policy.kept_columns:
            yield POLICY("uncovered.suppressed")
        yield POLICY("uncovered.facts")
        yield POLICY("uncovered.statistics")

    def describe_open_table(self, policy: Policy) -> str:
        """Return why nothing bounds the table as a whole."""
        return POLICY("uncovered.table")

    def describe_swap(self, policy: Policy) -> Iterator[tuple[str, str]]:
        """Yield paragraphs of the plan on swapping; none without."""
        if policy.swap is not None:
            yield "swap", POLICY("swap.done", k=policy.block_size, columns=name_some(policy.swapped_columns))
            yield "", POLICY("swap.linked", share=format_most(1 / policy.swap.k))
            for words in _describe_blocks(policy):
                yield "not covered", words

    def view_options(self, policy: Policy) -> dict[str, str | None]:
        """Return the options that the plan names for scripts, by their key there."""
        return {}


def _describe_blocks(policy: Policy) -> Iterator[str]:
    """Yield what neither epsilon nor blocks cover if values are swapped."""
    yield POLICY("uncovered.table_swapped", k=policy.block_size)
    if entries := [name for name in policy.swapped_columns if name not in policy.noise_columns]:
        yield POLICY("uncovered.swapped_entries", columns=name_some(entries))


def describe_block(policy: Policy) -> str:
    """Return whose values may be in a row if values are swapped: the least number of people, and what they have in common."""
    assert policy.swap is not None  # noqa: S101  for the type checker
    quasi = policy.released_quasi
    if not quasi:
        return POLICY("swap.people", k=policy.swap.k)
    return POLICY("swap.people_alike", k=policy.swap.k, columns=join_last(quasi))


def tell_copies(policy: Policy) -> Iterator[str]:
    """Yield what columns released without noise reveal about masked ones, if both are made from the same columns."""
    if not policy.derive:
        return
    masked = {name: _sources(policy, name) for name in policy.noise_columns}
    for name in (*policy.kept_columns, *policy.generalised_columns):
        if alike := [column for column, of in masked.items() if of & _sources(policy, name)]:
            yield POLICY("uncovered.copies", column=name, columns=name_some(alike))


def _sources(policy: Policy, name: str) -> set[str]:
    """Return the columns of the source that a column is made from, or the column itself."""
    return set(list_leaves(policy.derive, name)) if name in policy.derive else {name}


def _bound_by_clusters(policy: Policy) -> str:
    """Return a bound that is a multiple of the epsilon of the rows, and what the tables add to it."""
    if not policy.tables:
        return POLICY("bound.clusters")
    return POLICY("bound.clusters_and_tables", amount=format_nano(policy.tables_cost or 0))


def epsilon_words(policy: Policy) -> str:
    """Return the epsilon of a release, and how the columns share it, as text."""
    parts = policy.column_epsilon
    if len(parts) == 1:
        [(name, part)] = parts.items()
        split = POLICY("amount.all_for_column", column=name)
        if policy.tables:
            split = POLICY("amount.for_column", amount=format_nano(part.nano), column=name)
    elif len({part.nano for part in parts.values()}) == 1:
        split = POLICY("amount.for_each", amount=format_nano(next(iter(parts.values())).nano), count=len(parts))
    else:
        split = join_names(POLICY("amount.table", table=name, amount=format_nano(part.nano)) for name, part in parts.items())
    if policy.tables:
        split = POLICY("amount.beside", split=split, tables=name_some(list_shares(policy)))
    records, whose, amount = policy.records_per_person, policy.privacy_unit, amount_words(policy, policy.epsilon or 0)
    if policy.protect.by_rho:
        split = POLICY("amount.times_squared", split=split, records=records, whose=whose) if records > 1 else split
        return POLICY("amount.in_all_by_rho", amount=amount, split=split)
    split = POLICY("amount.times", split=split, records=records, whose=whose) if records > 1 else split
    return POLICY("amount.in_all", amount=amount, split=split)


def amount_words(policy: Policy, nano: int) -> str:
    """Return an amount in the unit of a policy as text: for rho with the epsilon that it gives at the policy's delta, never an
    epsilon without delta."""
    if policy.delta is None:
        return POLICY("amount.epsilon", epsilon=format_nano(nano))
    epsilon, delta = format_nano(policy.in_epsilon(nano)), decimal_text(policy.delta)
    return POLICY("amount.rho", rho=format_nano(nano), epsilon=epsilon, delta=delta)


def together_words(policy: Policy) -> str:
    """Return a phrase for the masked columns as one thing."""
    names = list(policy.noise_columns)
    if len(names) == 1:
        return POLICY("claim.one_column", column=names[0])
    return POLICY("claim.all_columns", count=len(names))


def refuse_generalised(parts: Parts, what: str) -> Iterator[Problem]:
    """A problem for every column that is generalised, with methods that generalise none."""
    for name in parts.generalised_columns:
        yield ("columns", name, "do"), what, "Keep, mask or drop the column, or use k-epsilon."


def find_groupless(parts: Parts) -> Iterator[Problem]:
    """Small groups to suppress where there are none."""
    makes_groups = any(column.role in RECOGNISED for column in parts.kept_columns.values())
    if isinstance(parts.suppress, Suppress) and parts.complete and not makes_groups:
        what = "there are no groups to suppress: no quasi-identifier is released."
        yield ("suppress",), what, "Remove suppress, or keep a column of role quasi."
