"""What `explore --json` prints, and what its page and its lines are made of: every setting, how
near to the records it is, and what it costs. All figures of the records are distances of releases
from them: none is a value of the data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from release_pipeline.audit import columns as ranges
from release_pipeline.audit.linkage import Rung
from release_pipeline.errors import WrongUsage
from release_pipeline.explore.simulating import Tried
from release_pipeline.masking.simulation import Numbers, Simulated
from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.pipeline.cap import HeadroomView
from release_pipeline.policy import Policy
from release_pipeline.policy.documents import OPTIONAL, Delta, Exactly, Hash
from release_pipeline.policy.file.describe import RISKY, keeps_linkage, propose_swap, tell_linkage
from release_pipeline.policy.plans.plan import describe_claim, not_covered_words
from release_pipeline.policy.plans.settings import Setting
from release_pipeline.policy.values.formats import ask_for_near, decimal_text


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


# What a steward asks for, and which of the settings that were tried surely give it.
#
# A target is a figure of releases, of one column or of all, and the most that it may be:
# `error:income=10%`, `mean:income=200` and `group-mean:income=1000` (how far the mean, and that of
# the worst group, may be off, in the column's unit), `correlation=0.02`.
#
# That some simulated releases meet it may be luck. A setting is said to meet the targets where so
# many do that at least half of all releases do: were it less, as many would in 5 of 100 cases at
# most. Epsilons are gone down from the largest that was tried as long as that holds, and the rule
# stops at the first that does not, so that trying many epsilons makes no setting look better. Of a
# method with several k these 5 of 100 are divided among them.


_FORM = re.compile(r"([a-z-]+)(?::(.+))?=([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(%)?")
OF_COLUMN, OF_ALL = ("error", "mean", "group-mean"), ("correlation",)
AS_SHARE = ("error", "correlation")  # figures without a unit
MOST_CORRELATION = 2  # so that any release meets what is not below
WRONG = 0.05  # how often a setting that does not meet the targets is said to


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a figure may be."""

    figure: str
    column: str
    most: float
    text: str


def read_target(text: str, policy: Policy) -> Target:
    """A target as it is written; refused in words."""
    match = _FORM.fullmatch(text.strip())
    known = ", ".join((*(f"{figure}:COLUMN" for figure in OF_COLUMN), *OF_ALL))
    if match is None or match[1] not in (*OF_COLUMN, *OF_ALL):
        raise WrongUsage(
            "this is no target.", where=text, remedy=f"Write FIGURE:COLUMN=MOST, like error:income=10%. Figures: {known}."
        )
    figure, column, most = match[1], match[2] or "", float(match[3])
    if (figure in OF_ALL) == bool(column):
        what = "is of all columns together" if column else "needs its column"
        raise WrongUsage(f"{figure} {what}.", where=text, remedy=f"Figures: {known}.")
    if column and column not in policy.noise_columns:
        remedy = ask_for_near(column, policy.noise_columns, f"There are: {', '.join(policy.noise_columns)}.")
        raise WrongUsage(f"the policy masks no column '{column}'.", where=text, remedy=remedy)
    if figure in OF_ALL and len(policy.noise_columns) < 2:
        raise WrongUsage("with one masked column there is no correlation.", where=text, remedy="Ask for its error.")
    if match[4] and figure not in AS_SHARE:
        raise WrongUsage(f"{figure} is in the column's own unit.", where=text, remedy="Leave % out.")
    most = most / 100 if match[4] else most
    if figure in OF_ALL and most >= MOST_CORRELATION:
        raise WrongUsage(
            f"{figure} is at most {MOST_CORRELATION}, so that any release meets this.",
            where=text,
            remedy=f"Write {figure}=0.02, or another number below {MOST_CORRELATION}.",
        )
    if most <= 0:
        raise WrongUsage("no release is exactly like the data.", where=text, remedy="Name a number above 0.")
    return Target(figure, column, most, text.strip())


def count_sequences(settings: Sequence[Setting]) -> int:
    """Of how many sequences of epsilons the method is that has most of them."""
    keys = {(setting.method, _without_epsilon(setting)) for setting in settings}
    return max(sum(1 for method, _ in keys if method == one) for one, _ in keys)


def count_draws(sequences: int) -> int:
    """How many releases must be simulated, so that targets which all of them meet are surely
    met."""
    return math.ceil(math.log2(sequences / WRONG))


def count_meeting(targets: Sequence[Target], simulated: Simulated) -> int:
    """How many of the simulated releases meet all targets; one without such a figure meets none."""
    figures: list[npt.NDArray[np.bool_]] = []
    for target in targets:
        of_draws = simulated.columns[target.column][target.figure] if target.column else simulated.correlation
        figures.append(of_draws <= target.most)  # NaN is not
    return int(np.logical_and.reduce(figures).sum())


def is_sure(meeting: int, draws: int, wrong: float = WRONG) -> bool:
    """Whether so many of these draws show that at least half of all releases meet the targets.

    >>> is_sure(5, 5), is_sure(19, 30), is_sure(20, 30)
    (True, False, True)
    """
    return sum(math.comb(draws, count) for count in range(meeting, draws + 1)) <= wrong * 2**draws


def find_met(targets: Sequence[Target], tested: Sequence[tuple[int, Tried]]) -> Iterator[MetView]:
    """For each method the least epsilon, of those that were tried, with which all targets are
    surely met. `tested`: with their numbers."""
    for method in dict.fromkeys(tried.changed.setting.method for _, tried in tested):
        sequences: dict[tuple[tuple[str, str], ...], list[tuple[int, Tried]]] = {}
        for number, tried in tested:
            if tried.changed.setting.method == method:
                sequences.setdefault(_without_epsilon(tried.changed.setting), []).append((number, tried))
        last = (_go_down(targets, sequence, WRONG / len(sequences)) for sequence in sequences.values())
        sure = [numbered for numbered in last if numbered is not None]
        everything = [numbered for sequence in sequences.values() for numbered in sequence]
        nearest = max(everything, key=lambda pair: count_meeting(targets, pair[1].simulated) / pair[1].simulated.draws)
        number, best = min(sure, key=lambda pair: _epsilon_of(pair[1])) if sure else nearest
        yield MetView(method, number if sure else None, count_meeting(targets, best.simulated), best.simulated.draws)


def _go_down(targets: Sequence[Target], sequence: Sequence[tuple[int, Tried]], wrong: float) -> tuple[int, Tried] | None:
    """The last setting, from the largest epsilon down, up to which all surely meet the targets."""
    last: tuple[int, Tried] | None = None
    for number, tried in sorted(sequence, key=lambda pair: _epsilon_of(pair[1]), reverse=True):
        if not is_sure(count_meeting(targets, tried.simulated), tried.simulated.draws, wrong):
            break
        last = number, tried
    return last


def _epsilon_of(tried: Tried) -> float:
    return float(tried.changed.setting.protect.get("epsilon") or 0)


def _without_epsilon(setting: Setting) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, str(value)) for key, value in setting.protect.items() if key != "epsilon"))


# What simulated releases came to, as the document has it.


WIDER = math.sqrt(2)  # the records that settings are tried on, and those of the release, are each a sample of their own
DIGITS = 6
MANY = 20  # figures, of which the prediction's own width says enough
WILD = 30  # times the middle, from which on the range of fewer says nothing
NOTHING = RangeView(None, None, None)


def view_setting(tested: Tried, number: int, targets: Sequence[Target] = ()) -> SettingView:
    """A setting that was tried; its ledger is another matter."""
    policy, simulated, setting = tested.changed.policy, tested.simulated, tested.changed.setting
    errors = [figures["error"] for figures in simulated.columns.values()]
    ladder = tuple(map(_view_rung, simulated.linkage))
    limit = _find_limit(policy, ladder)
    met = [] if limit is None else [*tell_linkage(policy)]  # what a policy that passes the gate says; this one does not
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
        meets=count_meeting(targets, simulated) if targets else None,
        proposal=_propose(policy, ladder),
        linkage_limit=limit,
        linked_at_most=None if policy.swap is None else round_figure(1 / policy.swap.k),
    )


def predict(figures: Numbers, *, widened: float = WIDER) -> RangeView:
    """The range of one more error like these. `widened`: how many times further the ends are from the
    middle, for the records of the release are others. Few of different orders of magnitude have only
    a middle: they predict nothing of one more.
    """
    known = figures[np.isfinite(figures)]
    if not len(known):
        return NOTHING
    low = middle = high = float(np.median(known))
    if len(known) > 1 and float(np.ptp(known)) > 0:
        low, high = ranges.predict(known, positive=True, widened=widened)
        if len(known) < MANY and high > WILD * middle > 0:
            return RangeView(None, round_figure(middle), None)
    return RangeView(*(round_figure(end) for end in (min(low, middle), middle, max(high, middle))))


def predict_off(distances: Numbers, *, widened: float = WIDER) -> RangeView:
    """The range of one more distance of a figure from its own: from 0 to where a normal number of the
    same mean square is in 99 of 100 cases, by Student's t.
    """
    known = distances[np.isfinite(distances)]
    if len(known) < 2:
        return NOTHING
    square = float(np.sqrt(np.mean(known**2)))
    high = widened * ranges.quantile_of_t(len(known) - 1) * square * math.sqrt(1 + 1 / len(known))
    middle = float(np.median(known))
    return RangeView(0.0, round_figure(middle), round_figure(max(high, middle)))


def round_figure(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.{DIGITS}g}")


def _view_column(figures: Mapping[str, Numbers]) -> ColumnFigures:
    off = (predict_off(figures[key]) for key in ("mean", "group-mean"))
    return ColumnFigures(predict(figures["error"]), *off)


def _view_rung(rung: Rung) -> RungView:
    figures = (round_figure(figure) for figure in (rung.linked.value, rung.median, rung.control))
    return RungView(rung.masked, rung.columns, *figures)


def _find_limit(policy: Policy, ladder: Sequence[RungView]) -> float | None:
    """The policy's limit on linkage, where it would refuse the setting."""
    limit = policy.gates.linkage
    if limit is None or not ladder or keeps_linkage(policy, limit) or ladder[-1].linked <= limit:
        return None
    return float(limit)


def _propose(policy: Policy, ladder: Sequence[RungView]) -> str:
    """How swapping would keep the policy's limit on linkage, or that of `RISKY`, where more is
    linked."""
    limit = policy.gates.linkage or RISKY
    is_kept = not ladder or ladder[-1].linked <= limit or keeps_linkage(policy, limit)
    return "" if is_kept else propose_swap(policy, limit)
