"""What `explore --json` prints, and what its page and its lines are made of: every setting, how
near to the records it is, and what it costs. All figures of the records are distances of releases
from them: none is a value of the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from release_pipeline.flow.status.headroom import HeadroomView
from release_pipeline.policy.documents import OPTIONAL, Delta, Exactly, Hash


@dataclass(frozen=True, slots=True)
class RangeView:
    """A figure of releases under a setting."""

    low: Annotated[float | None, "99 of 100 releases should be from here; null where too few were simulated to tell"]
    middle: Annotated[float | None, "half of them below, half above; null where there is no such figure"]
    high: Annotated[float | None, "to here; null likewise"]


@dataclass(frozen=True, slots=True)
class ColumnFigures:
    """A masked column under a setting."""

    error: Annotated[RangeView, "mean squared difference over the variance: 1 is no better than publishing the mean"]
    mean: Annotated[RangeView, "how far the mean is off, in the column's own unit"]
    group_mean: Annotated[RangeView, "how far the mean of a group is off, of the group where that is most"]


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
    correlation: Annotated[RangeView, "mean absolute difference of the columns' correlations; null with one column"]
    linkage: Annotated[float | None, "rows found by who knows all released columns of everybody; null where rows are nobody's"]
    linkage_ladder: Annotated[tuple[RungView, ...], "the same from the kept columns on; the last one is `linkage`"]
    suppressed: Annotated[float, "the share of the records that lose a cell, or are dropped"]
    draws: Annotated[int, "how many releases were simulated"]
    ledger: Annotated[HeadroomView | None, "the ledger before and after, and how many of the planned series fit"]
    columns: Annotated[dict[str, ColumnFigures], "every masked column"]
    meets: Annotated[int | None, "how many of the simulated releases meet all targets"] = field(default=None, metadata=OPTIONAL)
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

    number: Annotated[int, "for --choose"]
    words: Annotated[str, "it in a line"]
    why: Annotated[str, "what a check of such a policy would say, or what a release would be refused for"]
    by_ledger: Annotated[bool, "whether the ledger alone would refuse it: --refused tries it all the same"]


@dataclass(frozen=True, slots=True)
class MetView:
    """The least epsilon, of those that were tried, with which a method surely meets all targets."""

    method: Annotated[str, "the method"]
    number: Annotated[int | None, "the setting; null where none surely meets them"]
    meets: Annotated[int, "how many of its simulated releases meet all; without one those of the setting that came nearest"]
    draws: Annotated[int, "of so many"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreDocument:
    """What `explore --json` prints."""

    FORMAT: ClassVar[str] = "release-pipeline/explore/1"

    policy: Annotated[str, "the name of the policy"]
    hash: Annotated[Hash, "SHA-256 of its canonical form"]
    population: Annotated[str, "whose budget it spends"]
    on: Annotated[Literal["like", "shape"], "what settings were tried on"]
    on_words: Annotated[str, "that in words"]
    rows: Annotated[int, "how many records each simulated release had"]
    warnings: Annotated[tuple[str, ...], "what was done to the records, and what to keep in mind"]
    groupings: Annotated[tuple[str, ...], "the columns whose groups were looked at"]
    columns: Annotated[tuple[str, ...], "the masked columns"]
    settings: Annotated[tuple[SettingView, ...], "every setting that was tried; the policy's own first, if it could be"]
    refused: Annotated[tuple[RefusedView, ...], "those that were not, and why"]
    targets: Annotated[tuple[str, ...], "what was asked for with --target"] = ()
    met: Annotated[tuple[MetView, ...], "by method, what meets them"] = ()
