"""The document of `explore --json`, from which its page and its lines are made: every setting, how near to the records it is, and
what it costs. All figures of the records are distances of releases from them: none is a value of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np

from release_pipeline.audit import columns as ranges
from release_pipeline.audit.linkage import Rung
from release_pipeline.explore.simulating import Tried
from release_pipeline.masking.simulation import Numbers
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.pipeline.cap import HeadroomView
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import OPTIONAL, Delta, Exactly, Hash
from release_pipeline.policy.file.describe import RISKY, keeps_linkage, propose_swap, tell_linkage
from release_pipeline.policy.plans.plan import describe_claim, not_covered_words
from release_pipeline.policy.values.formats import decimal_text


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
    """The success of somebody who knows the kept columns of everyone and some masked ones."""

    masked: Annotated[int, "how many masked columns are known too"]
    columns: Annotated[tuple[str, ...], "those that link most"]
    linked: Annotated[float, "the share of released rows that are found with these"]
    median: Annotated[float, "the same in the median of the sets of columns that were tried"]
    control: Annotated[float, "by guessing among records with the same kept columns; of these columns only, among all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingView:
    """A setting, its effect on the data, its claim and its cost."""

    number: Annotated[int, "1 is the policy as it is"]
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

    number: Annotated[int, "among all settings"]
    words: Annotated[str, "it in a line"]
    why: Annotated[str, "what a check of such a policy would say, or what a release would be refused for"]
    by_ledger: Annotated[bool, "whether the ledger alone would refuse it: --refused tries it all the same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreDocument:
    """The document that `explore --json` prints."""

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


# The results of simulated releases, in the form of the document.


WIDER = math.sqrt(2)  # the records that settings are tried on, and those of the release, are two samples
DIGITS = 6
MANY = 20  # from which on the prediction's own width is wide enough
WILD = 30  # times the middle, from which on the range of fewer figures means nothing
NOTHING = RangeView(None, None, None)


def view_setting(tested: Tried, number: int) -> SettingView:
    """Return the view of a setting that was tried, without its ledger."""
    policy, simulated, setting = tested.changed.policy, tested.simulated, tested.changed.setting
    errors = [figures["error"] for figures in simulated.columns.values()]
    ladder = tuple(map(_view_rung, simulated.linkage))
    limit = _find_limit(policy, ladder)
    met = [] if limit is None else [*tell_linkage(policy)]  # the text of a policy that passes the gate; this one does not
    return SettingView(
        number=number,
        words=setting.summary,
        block=setting.block,
        changes=tested.changed.changes,
        method=policy.protect.method,
        k=policy.protect.k,
        epsilon=None if policy.epsilon is None else format_nano(policy.in_epsilon(policy.epsilon)),
        delta=None if policy.delta is None else decimal_text(policy.delta),
        definition=policy.definition,  # pyright: ignore[reportArgumentType]  one of the catalogue's
        scope=policy.protect.scope,  # pyright: ignore[reportArgumentType]  likewise
        claim=describe_claim(policy),
        covers_table=policy.covers_table,
        not_covered=tuple(words for words in not_covered_words(policy) if words not in met),
        error=predict(np.max(errors, axis=0)),
        correlation=predict_off(simulated.correlation),
        linkage=ladder[-1].linked if ladder else None,
        linkage_ladder=ladder,
        suppressed=round_figure(float(simulated.suppressed[0])),
        draws=simulated.draws,
        ledger=None,
        columns={name: _view_column(figures) for name, figures in simulated.columns.items()},
        proposal=_propose(policy, ladder),
        linkage_limit=limit,
        linked_at_most=None if policy.swap is None else math.ceil(1_000_000 / policy.swap.k) / 1_000_000,
    )


def predict(figures: Numbers, *, widened: float = WIDER) -> RangeView:
    """Return the range of one more error like these. `widened`: how many times further the ends are from the middle, since the
    records of the release are others. A few figures of different orders of magnitude have only a middle: they predict nothing."""
    known = figures[np.isfinite(figures)]
    if not len(known):
        return NOTHING
    low = middle = high = float(np.median(known))
    if len(known) > 1 and float(np.ptp(known)) > 0:
        low, high = ranges.predict(known, positive=True, widened=widened)
        if len(known) < MANY and high > WILD * middle > 0:
            return RangeView(None, round_figure(middle), None)
    return RangeView(*(round_figure(end) for end in (min(low, middle), middle, max(high, middle))))


def predict_off(distances: Numbers) -> RangeView:
    """Return the range of one more distance of a figure from its own: from 0 to where a normal number of the same mean square is
    in 99 of 100 cases, by Student's t."""
    known = distances[np.isfinite(distances)]
    if len(known) < 2:
        return NOTHING
    square = float(np.sqrt(np.mean(known**2)))
    high = WIDER * ranges.quantile_of_t(len(known) - 1) * square * math.sqrt(1 + 1 / len(known))
    middle = float(np.median(known))
    return RangeView(0.0, round_figure(middle), round_figure(max(high, middle)))


def round_figure(value: float) -> float:
    """Return the value with six significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _view_column(figures: Mapping[str, Numbers]) -> ColumnFigures:
    off = (predict_off(figures[key]) for key in ("mean", "group-mean"))
    return ColumnFigures(predict(figures["error"]), *off)


def _view_rung(rung: Rung) -> RungView:
    figures = (round_figure(figure) for figure in (rung.linked.value, rung.median, rung.control))
    return RungView(rung.masked, rung.columns, *figures)


def _find_limit(policy: Policy, ladder: Sequence[RungView]) -> float | None:
    """Return the policy's limit on linkage, where it would refuse the setting."""
    limit = policy.gates.linkage
    if limit is None or not ladder or keeps_linkage(policy, limit) or ladder[-1].linked <= limit:
        return None
    return float(limit)


def _propose(policy: Policy, ladder: Sequence[RungView]) -> str:
    """Return how swapping would keep the policy's limit on linkage, or that of `RISKY`, where more is linked."""
    limit = policy.gates.linkage or RISKY
    is_kept = not ladder or ladder[-1].linked <= limit or keeps_linkage(policy, limit)
    return "" if is_kept else propose_swap(policy, limit)
