"""What simulated releases came to, in the words and ranges of the document."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from release_pipeline.flow.exploring.document import (
    ColumnFigures,
    ExploredColumn,
    GroupView,
    ModelView,
    RungView,
    SettingView,
    ShareView,
)
from release_pipeline.flow.exploring.hiding import Which, pick_groups, pick_places, pick_shares
from release_pipeline.flow.exploring.ranges import (
    ANY,
    NOTHING,
    POSITIVE,
    SHARE,
    Ends,
    Numbers,
    RangeView,
    predict,
    predict_quantile,
    round_figure,
)
from release_pipeline.flow.exploring.trials import Bench, Tested
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import decimal_text
from release_pipeline.policy.gate_words import RISKY, keeps_linkage, propose_swap, tell_linkage
from release_pipeline.policy.words import describe_claim, not_covered_words
from release_pipeline.privacy.budget import format_nano
from release_pipeline.stages.audit import without_reasons
from release_pipeline.stages.served import SHARES
from release_pipeline.stages.simulation import Simulated, known

WIDER = math.sqrt(2)  # the records that settings are tried on, and those of the release, are each a sample of their own


def view_column(bench: Bench, name: str, clamped: float) -> ExploredColumn:
    """A masked column as it is whatever the setting."""
    reference, column = bench.reference, bench.policy.noise_columns[name]
    clock, kept = column.clock, _pick_places(bench, name)
    return ExploredColumn(
        name,
        column.label or "",
        column.domain_texts,
        clamped,
        tuple(map(round_figure, reference.places[name][kept].tolist())),
        tuple(map(round_figure, reference.figures[name]["curve"][kept].tolist())),
        None if clock is None else clock.show(0),
        None if clock is None else clock.unit,
    )


def view_setting(bench: Bench, tested: Tested, number: int) -> SettingView:
    """A setting that was tried; its ledger is another matter."""
    policy, found, setting = tested.policy, tested.found, tested.setting
    widened = WIDER if bench.resampled else 1.0
    shares = {name: format_nano(policy.in_epsilon(share.nano)) for name, share in policy.column_epsilon.items()}
    columns = {name: view_figures(bench, name, tested, widened, shares.get(name)) for name in found.columns}
    told = [name for name in found.columns if name not in bench.hidden]
    errors = np.stack([found.columns[name]["error"][:, 0] for name in told], axis=1) if told else np.zeros((found.draws, 0))
    middles = np.median(errors, axis=0)
    ladder = tuple(
        RungView(
            rung["masked"],
            tuple(rung["columns"]),
            *(round_figure(figure) for figure in (rung["linked"]["value"], rung["median"], rung["control"])),
        )
        for rung in found.once.get("linkage", ())
    )
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
        error=predict(
            errors.max(axis=1),
            positive=True,
            widened=widened,
            ends=(0.0, max(_bound_error(bench, policy, name)[1] for name in told)),
        )
        if told
        else NOTHING,
        mean_error=round_figure(float(np.exp(np.mean(np.log(np.maximum(middles, 1e-12)))))) if told else None,
        correlation=_of_whole(found, "correlation", widened) if not bench.hidden else NOTHING,
        worst_correlation=_of_whole(found, "worst_correlation", widened) if not bench.hidden else NOTHING,
        linkage=ladder[-1].linked if ladder else None,
        linkage_ladder=ladder,
        attacks={name: round_figure(risk) for name, risk in found.once.get("attacks", {}).items()},
        models=tuple(
            ModelView(name, round_figure(score["original"]), round_figure(score["released"]))
            for name, score in found.once.get("models", {}).items()
            if name not in bench.hidden
        ),
        suppressed=round_figure(float(found.whole["suppressed"][0])) if "suppressed" in found.whole else None,
        draws=found.draws,
        ledger=None,
        columns=columns,
        proposal=_propose(policy, ladder),
        linkage_limit=limit,
        linked_at_most=None if policy.swap is None else round_figure(1 / policy.swap.k),
    )


def _find_limit(policy: Policy, ladder: Sequence[RungView]) -> float | None:
    """The policy's limit on linkage, where it would refuse the setting."""
    limit = policy.gates.linkage
    if limit is None or not ladder or keeps_linkage(policy, limit) or ladder[-1].linked <= limit:
        return None
    return float(limit)


def _propose(policy: Policy, ladder: Sequence[RungView]) -> str:
    """How swapping would keep the policy's limit on linkage, or that of `RISKY`, where more is linked."""
    limit = policy.gates.linkage or RISKY
    is_kept = not ladder or ladder[-1].linked <= limit or keeps_linkage(policy, limit)
    return "" if is_kept else propose_swap(policy, limit)


def _bound_values(bench: Bench, policy: Policy, name: str) -> Ends:
    """Between which values of a release are: anywhere, where they are not moved back into the domain."""
    grid = bench.policy.noise_columns[name].exact_grid
    return (float(grid.lo), float(grid.hi)) if policy.clamps else ANY


def _bound_error(bench: Bench, policy: Policy, name: str) -> Ends:
    """Between which errors of a release are: the worst is where each value is moved from one end of the domain to the other."""
    (low, high), variance = _bound_values(bench, policy, name), bench.reference.variance[name]
    return (0.0, (high - low) ** 2 / variance) if variance > 0 and math.isfinite(high - low) else POSITIVE


def view_figures(bench: Bench, name: str, tested: Tested, widened: float, epsilon: str | None) -> ColumnFigures:
    """A column under a setting."""
    found, values = tested.found, _bound_values(bench, tested.policy, name)
    reference, figures, column = bench.reference, found.columns[name], bench.policy.noise_columns[name]
    original, points = reference.figures[name], reference.points[name]
    kept, told = _pick_places(bench, name), _pick_quantiles(bench, name)
    places, curves = reference.places[name][kept], figures["curve"][:, kept]
    shown = pick_shares(original["at"], reference.records.count) if bench.is_look else np.ones(len(original["at"]), np.bool_)
    units = column.exact_grid.quantise(points[: len(points) - len(column.reasons)]).tolist()
    hidden = name in bench.hidden
    return ColumnFigures(
        error=NOTHING
        if hidden
        else predict(figures["error"][:, 0], positive=True, widened=widened, ends=_bound_error(bench, tested.policy, name)),
        ks=predict(figures["ks"][:, 0], positive=True, widened=widened, ends=SHARE),
        mean=ShareView("mean", None, NOTHING)
        if hidden
        else ShareView("mean", _number(original["mean"][0]), predict(figures["mean"][:, 0], widened=widened, ends=values)),
        quantiles=tuple(
            ShareView(
                str(share),
                _number(original["quantiles"][at]),
                predict_quantile(figures["quantiles"][:, at], share, curves, places, widened=widened, ends=values),
            )
            if told[at]
            else ShareView(str(share), None, NOTHING)
            for at, share in enumerate(SHARES)
        ),
        shares=_list([*map(column.say_units, units), *column.reasons], original["at"], figures["at"], shown, widened),
        groups=tuple(_list_groups(bench, name, original["groups"], figures["groups"], widened, values)),
        curve=tuple(map(round_figure, np.median(curves, axis=0).tolist())),
        epsilon=epsilon,
    )


def _pick_places(bench: Bench, name: str) -> Which:
    """Which places of a column's curve are shown."""
    places = bench.reference.places[name]
    return pick_places(places, _ordered(bench, name)) if bench.is_look else np.ones(len(places), dtype=np.bool_)


def _pick_quantiles(bench: Bench, name: str) -> Which:
    """Which quantiles are shown, those in the middle first."""
    if not bench.is_look:
        return np.ones(len(SHARES), dtype=np.bool_)
    order = sorted(range(len(SHARES)), key=lambda at: abs(SHARES[at] - 0.5))
    return pick_places(bench.reference.figures[name]["quantiles"], _ordered(bench, name), order)


def _ordered(bench: Bench, name: str) -> Numbers:
    """The values of a column in ascending order."""
    return known(bench.policy.noise_columns[name], bench.reference.ordered(name))


def _list(labels: Sequence[str], original: Numbers, drawn: Numbers, shown: Which, widened: float) -> tuple[ShareView, ...]:
    return tuple(
        ShareView(label, _number(original[at]), predict(drawn[:, at], widened=widened, ends=SHARE))
        if shown[at]
        else ShareView(label, None, NOTHING)
        for at, label in enumerate(labels)
    )


def _list_groups(bench: Bench, name: str, original: Numbers, drawn: Numbers, widened: float, ends: Ends) -> list[GroupView]:
    found: list[GroupView] = []
    for by in bench.groupings:
        places, labels = bench.reference.groups[by]
        shown = np.ones(len(labels), dtype=np.bool_)
        if bench.is_look:
            has_value = ~np.isnan(without_reasons(bench.policy.noise_columns[name], bench.reference.seen[name]))
            shown = pick_groups(np.bincount(places[has_value & (places >= 0)], minlength=len(labels)))
        for label, is_shown in zip(labels, shown, strict=True):
            at = len(found)
            told = _number(original[at]), predict(drawn[:, at], widened=widened, ends=ends)
            found.append(GroupView(by, label, *(told if is_shown else (None, NOTHING))))
    return found


def _of_whole(found: Simulated, figure: str, widened: float) -> RangeView:
    if figure not in found.whole:
        return NOTHING
    return predict(found.whole[figure], positive=True, widened=widened, ends=(0.0, 2.0))


def _number(value: float) -> float | None:
    return round_figure(float(value)) if math.isfinite(value) else None
