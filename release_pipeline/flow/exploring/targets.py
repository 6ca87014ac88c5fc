"""What a steward asks for, and the least epsilon that gives it with each method.

A target is a figure of releases, of one column or of all, and the most that it may be: `error:income=0.1`, `ks:income=0.05`,
`share-zero:income=1pt` (how far the share of zeros may be off, in percentage points), `mean:income=200`, `median:income=500`,
`group-mean:income=1000` (the largest group's), `correlation=0.02` (the mean of all pairs). It is met where the middle of
simulated releases is no more than that. Where each column has a part of epsilon that is its own, each is given the least that
meets what is asked of it, and the weights follow; a column of which nothing is asked keeps the part that the policy gives it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

from release_pipeline.errors import ReleasePipelineError, WrongUsage
from release_pipeline.flow.exploring.trials import Bench, Refused, Tested, explain
from release_pipeline.policy import Policy
from release_pipeline.policy.formats import ask_for_near, decimal_text
from release_pipeline.policy.settings import Setting
from release_pipeline.privacy.figures import show_figure
from release_pipeline.stages.served import SHARES
from release_pipeline.stages.simulation import Reference, Simulated, simulate

_FORM = re.compile(r"([a-z-]+)(?::(.+))?=([0-9.]+)(pt|%)?")
LEAST, MOST = Decimal("0.001"), Decimal(1000)  # epsilon of a column, where it is sought
STEPS = 12  # of halving, between these: a hundredth at the end
NEAR = 1.02  # how near the least is sought
TIMES = 2  # as many simulated releases as of a setting: the middle of them is sought to within a tenth
AROUND = 1.5  # how far beyond what was tried the least is sought
OF_COLUMN = ("error", "ks", "share-zero", "mean", "median", "group-mean")
OF_ALL = ("correlation",)
AT_MOST = {"ks": 1, "share-zero": 1, "correlation": 2}  # so that any release meets what is not below


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a figure may be."""

    figure: str
    column: str
    most: float
    text: str


@dataclass(frozen=True, slots=True)
class Solved:
    """The setting that meets the targets with the least epsilon, and what it gives; `why` none does."""

    setting: Setting
    reached: Mapping[str, float]
    why: str = ""


def read_target(text: str, policy: Policy) -> Target:
    """A target as it is written; refused in words."""
    match = _FORM.fullmatch(text.strip())
    known = ", ".join((*(f"{figure}:COLUMN" for figure in OF_COLUMN), *OF_ALL))
    if match is None or match[1] not in (*OF_COLUMN, *OF_ALL):
        raise WrongUsage(
            "this is no target.", where=text, remedy=f"Write FIGURE:COLUMN=MOST, like error:income=0.1. Figures: {known}."
        )
    figure, column, most = match[1], match[2] or "", float(match[3])
    if (figure in OF_ALL) == bool(column):
        what = "is of all columns together" if column else "needs its column"
        raise WrongUsage(f"{figure} {what}.", where=text, remedy=f"Figures: {known}.")
    if column and column not in policy.noise_columns:
        remedy = ask_for_near(column, policy.noise_columns, f"There are: {', '.join(policy.noise_columns)}.")
        raise WrongUsage(f"the policy masks no column '{column}'.", where=text, remedy=remedy)
    if match[4] and figure != "share-zero":
        raise WrongUsage(f"{figure} is no share.", where=text, remedy="Leave pt or % out.")
    if most >= AT_MOST.get(figure, math.inf) and not match[4]:
        points = f", or {most:g}pt" if figure == "share-zero" else ""
        raise WrongUsage(
            f"{figure} is at most {AT_MOST[figure]}, so that any release meets this.",
            where=text,
            remedy=f"Write {text.partition('=')[0].strip()}={most / 100:g}{points}.",
        )
    if most <= 0:
        raise WrongUsage("no release is exactly like the data.", where=text, remedy="Name a number above 0.")
    return Target(figure, column, most / 100 if match[4] else most, text.strip())


def check_told(targets: Sequence[Target], bench: Bench) -> None:
    """Refuse to seek what a look does not tell: by halving it would be told."""
    for target in targets:
        about = {target.column} if target.column else bench.policy.noise_columns.keys()
        if hidden := sorted(bench.hidden & about):
            raise WrongUsage(
                f"fewer than ten people have a value in {hidden[0]}, and a look does not tell its figures.",
                where=target.text,
                remedy="Seek those of another column.",
            )


def measure_target(target: Target, found: Simulated, references: Sequence[Reference]) -> float:
    """What simulated releases give of it, in the middle; infinity where one of them has no such figure."""
    figure = _measure_target(target, found, references)
    return figure if math.isfinite(figure) else math.inf


def _measure_target(target: Target, found: Simulated, references: Sequence[Reference]) -> float:
    if target.figure in OF_ALL:
        return float(np.median(found.whole.get(target.figure, np.zeros(1))))
    figures = found.columns[target.column]
    if target.figure in ("error", "ks"):
        return float(np.median(figures[target.figure]))
    return float(np.median([_off(target, figures, references[draw % len(references)], draw) for draw in range(found.draws)]))


def _off(target: Target, figures: Mapping[str, Any], reference: Reference, draw: int) -> float:
    """How far a figure of one release is from that of its records."""
    own = reference.figures[target.column]
    if target.figure == "mean":
        return abs(float(figures["mean"][draw, 0] - own["mean"][0]))
    if target.figure == "median":
        middle = SHARES.index(0.5)
        return abs(float(figures["quantiles"][draw, middle] - own["quantiles"][middle]))
    if target.figure == "share-zero":
        [at] = np.flatnonzero(reference.points[target.column] == 0) if 0 in reference.points[target.column] else [-1]
        return abs(float(figures["at"][draw, at] - own["at"][at])) if at >= 0 else 0.0
    away = np.abs(figures["groups"][draw] - own["groups"])
    return float(np.nanmax(away)) if np.isfinite(away).any() else 0.0


def solve(
    bench: Bench, targets: Sequence[Target], results: Sequence[Tested | Refused], progress: Callable[[str], None]
) -> Iterator[Solved]:
    """For every method that was tried, with the best of its k, the least epsilon that meets all targets."""
    for method in dict.fromkeys(one.setting.method for one in results):
        of_method = [one for one in results if one.setting.method == method]
        mine = [one for one in of_method if isinstance(one, Tested)]
        if not mine:
            yield from (Solved(one.setting, {}, one.why) for one in of_method[:1] if isinstance(one, Refused))
            continue
        if mine[0].setting.protect.get("epsilon") is None:
            reached, best = min(((_worst_of(targets, bench, one), one) for one in mine), key=lambda pair: pair[0])
            yield Solved(
                best.setting,
                _reach(targets, bench.references_of(best.policy), best.found),
                "" if reached <= 1 else "no k that was tried meets them, and it has no epsilon",
            )
            continue
        progress(f"seeking the least epsilon of {method}")
        yield _solve_method(bench, targets, mine)


def _worst(targets: Sequence[Target], references: Sequence[Reference], found: Simulated | None) -> float:
    """How many times the most that is allowed the worst target is; infinity where there would be no release."""
    if found is None:
        return math.inf
    return max(measure_target(target, found, references) / target.most for target in targets)


def _worst_of(targets: Sequence[Target], bench: Bench, tested: Tested) -> float:
    """The same of a setting that was tried."""
    return _worst(targets, bench.references_of(tested.policy), tested.found)


def _reach(targets: Sequence[Target], references: Sequence[Reference], found: Simulated | None) -> dict[str, float]:
    """What each target comes to; nothing where there would be no release."""
    figures = {} if found is None else {target.text: measure_target(target, found, references) for target in targets}
    return {text: figure for text, figure in figures.items() if math.isfinite(figure)}


def _solve_method(bench: Bench, targets: Sequence[Target], tested: Sequence[Tested]) -> Solved:
    """By halving, with the cluster sizes that came nearest at the least epsilon that met them, or at the largest."""
    shares = has_shares(tested[0].policy)
    sizes = _choose_sizes(bench, targets, tested)
    solved = [_solve_size(bench, targets, tested, k, shares=shares) for k in sizes]
    met = [found for found in solved if not found.why]
    return min(met, key=lambda found: found.setting.protect["epsilon"]) if met else solved[0]


def has_shares(policy: Policy) -> bool:
    """Whether columns have parts of epsilon that add up to it."""
    return bool(policy.column_epsilon) and policy.delta is None


def _choose_sizes(bench: Bench, targets: Sequence[Target], tested: Sequence[Tested]) -> list[Any]:
    """The two cluster sizes with which targets are nearest: one for less epsilon, one for more."""
    ranked = sorted(tested, key=lambda one: _worst_of(targets, bench, one))
    met = [one for one in tested if _worst_of(targets, bench, one) <= 1]
    least = sorted(met, key=lambda one: Decimal(one.setting.protect["epsilon"]))
    order = [*(one.setting.protect.get("k") for one in least), *(one.setting.protect.get("k") for one in ranked)]
    return list(dict.fromkeys(order))[:2]


def _solve_size(bench: Bench, targets: Sequence[Target], tested: Sequence[Tested], k: Any, *, shares: bool) -> Solved:
    base = next(one for one in tested if one.setting.protect.get("k") == k)
    policy, references = base.policy, bench.references_of(base.policy)

    def at(epsilons: Mapping[str, Decimal] | Decimal) -> tuple[Setting, Simulated | None, str]:
        setting = _with(base.setting, epsilons)
        try:
            changed = bench.written.change(setting, rows=bench.rows)
            draws = bench.draws_of(changed.policy, times=TIMES)
            found = simulate(changed.policy, references, secret=bench.secret, draws=draws, with_risks=False)
        except ReleasePipelineError as error:
            return setting, None, explain(error)
        return changed.setting, None if found.refusal else found, found.refusal

    like = [one for one in tested if one.setting.protect.get("k") == k]
    if not shares:
        ends = _bracket(bench, targets, like, lambda one: float(one.setting.protect["epsilon"]))
        return _halve_whole(references, targets, at, ends)
    return _halve_columns(bench, targets, policy, at, like)


def _bracket(
    bench: Bench, targets: Sequence[Target], like: Sequence[Tested], epsilon_of: Callable[[Tested], float]
) -> tuple[float, float]:
    """Ends between which the least epsilon is, by settings that were tried: beyond the largest that missed a target and the least
    that met all, somewhat, since these are simulated too."""
    low, high = float(LEAST), float(MOST)
    for one in like:
        if _worst_of(targets, bench, one) <= 1:
            high = min(high, epsilon_of(one) * AROUND)
        else:
            low = max(low, epsilon_of(one) / AROUND)
    return (low, high) if low < high else (high / AROUND**2, low * AROUND**2)


At = Callable[[Any], tuple[Setting, Simulated | None, str]]


def _halve_whole(references: Sequence[Reference], targets: Sequence[Target], at: At, ends: tuple[float, float]) -> Solved:
    low, high = ends
    best: tuple[Setting, Simulated] | None = None
    for _ in range(STEPS):
        if high / low < NEAR:
            break
        middle = math.sqrt(low * high)
        setting, found, _ = at(_round_up(middle))
        if found is not None and _worst(targets, references, found) <= 1:
            best, high = (setting, found), middle
        else:
            low = middle
    if best is None:
        setting, found, refused = at(_round_up(high))
        return Solved(setting, _reach(targets, references, found), refused or f"not even with epsilon {show_figure(high)}")
    return Solved(best[0], _reach(targets, references, best[1]))


def _halve_columns(bench: Bench, targets: Sequence[Target], policy: Policy, at: At, like: Sequence[Tested]) -> Solved:
    """All columns at once: a column's figures depend on its own part alone."""
    references = bench.references_of(policy)
    own = {name: float(share.fraction) for name, share in policy.column_epsilon.items()}
    asked = {name: [target for target in targets if target.column in (name, "")] for name in own}
    ends: dict[str, list[float]] = {}
    for name in own:
        if asked[name]:
            ends[name] = list(_bracket(bench, asked[name], like, lambda one, name=name: _share(one, name)))
    for _ in range(STEPS):
        middles = {name: math.sqrt(low * high) for name, (low, high) in ends.items()}
        if all(high / low < NEAR for low, high in ends.values()):
            break
        _, found, _ = at({name: _round_up(middles.get(name, own[name])) for name in own})
        for name, middle in middles.items():
            ends[name][1 if _worst(asked[name], references, found) <= 1 else 0] = middle
    setting, found, refused = at({name: _round_up(ends[name][1] if name in ends else own[name]) for name in own})
    missed = [name for name, (_, high) in ends.items() if high >= float(MOST)]
    why = refused or (f"not even with epsilon {MOST} for {missed[0]}" if missed else "")
    return Solved(setting, _reach(targets, references, found), why)


def _share(one: Tested, name: str) -> float:
    """The epsilon of a column."""
    return float(one.policy.column_epsilon[name].fraction)


def _with(setting: Setting, epsilons: Mapping[str, Decimal] | Decimal) -> Setting:
    """The setting with this epsilon, or with these of the columns."""
    rest = {key: value for key, value in setting.protect.items() if key not in ("epsilon", "weights")}
    if isinstance(epsilons, Decimal):
        return Setting({**rest, "epsilon": epsilons}, setting.trust, setting.min_rows)
    if len(set(epsilons.values())) > 1:
        rest["weights"] = dict(epsilons)
    return Setting({**rest, "epsilon": sum(epsilons.values(), Decimal(0))}, setting.trust, setting.min_rows)


def _round_up(epsilon: float) -> Decimal:
    """Three digits, as a steward would write it, and no less."""
    value = Decimal(repr(epsilon))
    step = Decimal(1).scaleb(value.adjusted() - 2)
    return Decimal(decimal_text(value.quantize(step, rounding=ROUND_CEILING)))
