"""What `explore --json` prints, and what its page shows: every setting with what readers are left with, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from release_pipeline.flow.exploring.ranges import RangeView
from release_pipeline.flow.status.headroom import HeadroomView
from release_pipeline.policy.documents import OPTIONAL, Delta, Exactly, Hash


@dataclass(frozen=True, slots=True)
class ShareView:
    """A quantile, or a share of the records."""

    at: Annotated[str, "which share below, of a quantile; of a share which value, or why there is none"]
    original: Annotated[float | None, "of the records that settings were tried on; null in a look where few records tell it"]
    released: Annotated[RangeView, "of releases"]


@dataclass(frozen=True, slots=True)
class GroupView:
    """The mean of a column in a group."""

    by: Annotated[str, "the column that makes the groups"]
    label: Annotated[str, "the group"]
    original: Annotated[float | None, "of the records; null where fewer than ten have a value, or that could be reckoned"]
    released: Annotated[RangeView, "of releases"]


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """A masked column under a setting."""

    error: Annotated[RangeView, "mean squared difference over the variance: 1 is no better than publishing the mean"]
    ks: Annotated[RangeView, "the largest difference of the two distribution functions"]
    mean: Annotated[ShareView, "the mean"]
    quantiles: Annotated[tuple[ShareView, ...], "quantiles"]
    shares: Annotated[tuple[ShareView, ...], "the share of the records at declared atoms, at zero, and without a value"]
    groups: Annotated[tuple[GroupView, ...], "means by group"]
    curve: Annotated[tuple[float, ...], "the share of values up to each place of the column, in the middle of releases"]
    epsilon: Annotated[Exactly | None, "its part of epsilon; null where all columns share one, or without noise"] = None


@dataclass(frozen=True, slots=True)
class ExploredColumn:
    """A masked column, as it is whatever the setting."""

    name: Annotated[str, "its name"]
    label: Annotated[str, "what the steward calls it; empty without a label"]
    domain: Annotated[tuple[str, str], "its declared ends"]
    clamped: Annotated[float, "the share of the records that lie outside, and are moved to an end"]
    places: Annotated[tuple[float, ...], "where curves are drawn: values of the records; in a look with ten records between"]
    curve: Annotated[tuple[float, ...], "the share of the records up to each place"]
    first: Annotated[str | None, "of a column of dates: the moment that its figures are counted from; `unit`: in what"] = field(
        default=None, metadata=OPTIONAL
    )
    unit: Annotated[Literal["day", "hour", "minute", "second"] | None, "of a column of dates, what is counted"] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True, slots=True)
class ModelView:
    """How well a model ranks records that it has not seen: the area under its curve (AUC); 0.5 is chance."""

    target: Annotated[str, "the column that is predicted, as the policy's audit names it"]
    original: Annotated[float, "of a model that learned from the records themselves"]
    released: Annotated[float, "of one that learned from a release"]


@dataclass(frozen=True, slots=True)
class RungView:
    """What somebody finds who knows the kept columns of everybody and some masked ones."""

    masked: Annotated[int, "how many masked columns are known too"]
    columns: Annotated[tuple[str, ...], "those that link most"]
    linked: Annotated[float, "the share of released rows that are found with these"]
    median: Annotated[float, "the same in the median of the sets of columns that were tried"]
    control: Annotated[float, "by guessing among records with the same kept columns; of these columns only, among all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """A setting, what is left of the data under it, and what it claims and costs."""

    number: Annotated[int, "for --choose; 1 is the policy as it is"]
    words: Annotated[str, "it in a line"]
    block: Annotated[str, "the line of a policy file"]
    changes: Annotated[tuple[str, ...], "what else is another in the policy then"]
    method: Annotated[str, "of `protect`"]
    k: Annotated[int | None, "records per cluster or class; null without"]
    epsilon: Annotated[Exactly | None, "of one release, in all; null for a method without"]
    delta: Annotated[Delta | None, "under zcdp: the delta of that epsilon"]
    definition: Annotated[Literal["dp", "zcdp", "idp", "k-epsilon", "k-anonymity"], "what is claimed"]
    scope: Annotated[Literal["centroid", "column", "table", "cluster", "class"], "what the claim covers"]
    claim: Annotated[str, "the claim in words"]
    covers_table: Annotated[bool, "whether a bound holds for all that a reader sees"]
    not_covered: Annotated[tuple[str, ...], "what the claim does not cover, a sentence each"]
    error: Annotated[RangeView, "that of the column with the largest"]
    mean_error: Annotated[float | None, "of the columns, the mean of their errors' logarithms, as an error"]
    correlation: Annotated[RangeView, "mean absolute difference of the columns' correlations; null with one column"]
    worst_correlation: Annotated[RangeView, "the largest of these differences"]
    linkage: Annotated[float | None, "rows found by who knows all released columns of everybody; null where rows are nobody's"]
    linkage_ladder: Annotated[tuple[RungView, ...], "the same from the kept columns on; the last one is `linkage`"]
    attacks: Annotated[dict[str, float], "what attackers gain from people's rows beyond a control group, by attack"]
    models: Annotated[tuple[ModelView, ...], "of the targets of the policy's audit"]
    suppressed: Annotated[float | None, "the share of the records that lose a cell, or are dropped"]
    draws: Annotated[int, "how many releases were simulated"]
    ledger: Annotated[HeadroomView | None, "the ledger before and after, and how many of the planned series fit"]
    columns: Annotated[dict[str, ColumnFigures], "every masked column"]
    proposal: Annotated[str, "how swapping would lower `linkage`, where that is high and the method can swap"] = field(
        default="", metadata=OPTIONAL
    )
    linkage_limit: Annotated[float | None, "the policy's own limit on `linkage`, where the setting is above it"] = field(
        default=None, metadata=OPTIONAL
    )
    linked_at_most: Annotated[float | None, "of swapped values: the share of links that are right at most on average"] = field(
        default=None, metadata=OPTIONAL
    )


@dataclass(frozen=True, slots=True)
class RefusedView:
    """A setting that would be refused."""

    words: Annotated[str, "it in a line"]
    why: Annotated[str, "what a check of such a policy would say, or what a release would be refused for"]
    by_ledger: Annotated[bool, "whether the ledger alone would refuse it: --refused tries it all the same"] = field(
        default=False, metadata=OPTIONAL
    )


@dataclass(frozen=True, slots=True)
class SolvedView:
    """The least that meets all targets with one method."""

    words: Annotated[str, "the setting in a line"]
    block: Annotated[str, "the line of a policy file"]
    epsilon: Annotated[Exactly | None, "of one release, in all; null where none meets the targets"]
    weights: Annotated[dict[str, str], "how columns share it; empty where they share nothing, or alike"]
    reached: Annotated[dict[str, float], "what simulation gives for each target then"]
    met: Annotated[bool, "whether all targets are met"]
    why: Annotated[str, "why not; empty where they are"]
    number: Annotated[int | None, "among the settings; null where it is not met"]


@dataclass(frozen=True, slots=True)
class SplitView:
    """Weights with which the same epsilon serves the worst column better."""

    words: Annotated[str, "the setting in a line"]
    block: Annotated[str, "the line of a policy file"]
    before: Annotated[float, "the largest error of a column without them"]
    after: Annotated[float, "with them, by simulation"]
    number: Annotated[int | None, "among the settings"]


@dataclass(frozen=True, slots=True)
class DomainView:
    """A shorter domain, and what the present one costs beside it."""

    column: Annotated[str, "the column"]
    low: Annotated[str, "the lower end"]
    high: Annotated[str, "the upper end"]
    times: Annotated[float, "how many times the squared error of the shorter domain the present one has"]
    clamped: Annotated[float, "the share of the records that the shorter one would move to its ends"]
    total: Annotated[float, "the share of the sum of absolute values that it would cut off"]
    variance: Annotated[float, "the share of the variance that it would cut off"]
    words: Annotated[str, "it in a sentence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreDocument:
    """What `explore --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/explore/1"

    policy: Annotated[str, "the name of the policy"]
    hash: Annotated[Hash, "SHA-256 of its canonical form"]
    population: Annotated[str, "whose budget it spends"]
    on: Annotated[Literal["like", "shape", "source"], "what settings were tried on"]
    on_words: Annotated[str, "that in words"]
    is_look: Annotated[bool, "whether it was a look at confidential records: everything here is confidential then"]
    rows: Annotated[int, "how many records each simulated release had"]
    warnings: Annotated[tuple[str, ...], "what was done to the records, and what to keep in mind"]
    groupings: Annotated[tuple[str, ...], "the columns whose groups were looked at"]
    columns: Annotated[tuple[ExploredColumn, ...], "the masked columns"]
    settings: Annotated[tuple[SettingView, ...], "every setting that could be tried, the policy's own first"]
    refused: Annotated[tuple[RefusedView, ...], "those that could not, and why"]
    targets: Annotated[tuple[str, ...], "what was asked for with --target"] = ()
    solved: Annotated[tuple[SolvedView, ...], "the least epsilon that meets them, by method"] = ()
    splits: Annotated[tuple[SplitView, ...], "weights that are worth having at the policy's own epsilon, by method"] = ()
    domains: Annotated[tuple[DomainView, ...], "domains that cost much"] = ()
    chosen: Annotated[int | None, "the setting that was written to the policy"] = field(default=None, metadata=OPTIONAL)
