"""What simulated releases came to, as the document has it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from release_pipeline.flow.exploring.document import ColumnFigures, RangeView, RungView, SettingView
from release_pipeline.flow.exploring.simulating import Tried
from release_pipeline.flow.exploring.targets import Target, count_meeting
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.gate_words import RISKY, keeps_linkage, propose_swap, tell_linkage
from release_pipeline.policy.words import describe_claim, not_covered_words
from release_pipeline.privacy.budget import format_nano
from release_pipeline.stages import ranges
from release_pipeline.stages.measures.linkage import Rung
from release_pipeline.stages.simulation import Numbers

WIDER = math.sqrt(2)  # the records that settings are tried on, and those of the release, are each a sample of their own
DIGITS = 6
MANY = 20  # figures, of which the prediction's own width says enough
WILD = 30  # times the middle, from which on the range of fewer says nothing
NOTHING = RangeView(None, None, None)


def view_setting(tested: Tried, number: int, targets: Sequence[Target] = ()) -> SettingView:
    """A setting that was tried; its ledger is another matter."""
    policy, found, setting = tested.changed.policy, tested.found, tested.changed.setting
    errors = [figures["error"] for figures in found.columns.values()]
    ladder = tuple(map(_view_rung, found.linkage))
    limit = _find_limit(policy, ladder)
    met = [] if limit is None else [*tell_linkage(policy)]  # what passing the gate tells, which this one does not
    return SettingView(
        number=number,
        words=setting.words,
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
        correlation=predict_off(found.correlation),
        linkage=ladder[-1].linked if ladder else None,
        linkage_ladder=ladder,
        suppressed=round_figure(float(found.suppressed[0])),
        draws=found.draws,
        ledger=None,
        columns={name: _view_column(figures) for name, figures in found.columns.items()},
        meets=count_meeting(targets, found) if targets else None,
        proposal=_propose(policy, ladder),
        linkage_limit=limit,
        linked_at_most=None if policy.swap is None else round_figure(1 / policy.swap.k),
    )


def predict(found: Numbers, *, widened: float = WIDER) -> RangeView:
    """The range of one more error like these. `widened`: how many times further the ends are from the
    middle, for the records of the release are others. Few of different orders of magnitude have a
    middle alone: nothing can be told of one more.
    """
    known = found[np.isfinite(found)]
    if not len(known):
        return NOTHING
    low = middle = high = float(np.median(known))
    if len(known) > 1 and float(np.ptp(known)) > 0:
        low, high = ranges.predict(known, positive=True, widened=widened)
        if len(known) < MANY and high > WILD * middle > 0:
            return RangeView(None, round_figure(middle), None)
    return RangeView(*(round_figure(end) for end in (min(low, middle), middle, max(high, middle))))


def predict_off(found: Numbers, *, widened: float = WIDER) -> RangeView:
    """The range of one more distance of a figure from its own: from 0 to where a normal number of the
    same mean square is in 99 of 100 cases, by Student's t.
    """
    known = found[np.isfinite(found)]
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
