"""The best split of an epsilon over columns: the weights with which the column that is worst off is as well off as it can be.

Settings that differ in epsilon alone tell what each column has at each part of it. Between them its error is a power of epsilon
that never rises. What comes out is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from release_pipeline.flow.exploring.targets import has_shares
from release_pipeline.flow.exploring.trials import Bench, Refused, Tested, try_settings
from release_pipeline.policy.settings import Setting
from release_pipeline.stages.simulation import Simulated

Numbers = npt.NDArray[np.float64]
BETTER = 0.95  # of the largest error: what is less better is not told
_TINY = 1e-9
_DIGITS = 2  # of a weight


@dataclass(frozen=True, slots=True)
class Split:
    """A setting with weights, as it was tried, and the largest error of a column without them and with."""

    tested: Tested
    before: float
    after: float


def split_best(bench: Bench, tested: Sequence[Tested]) -> Iterator[Split]:
    """For each method whose columns share epsilon, at the policy's own: weights that are worth having."""
    own = bench.policy.protect.charged
    if own is None or len(bench.policy.noise_columns) < 2 or bench.hidden:
        return
    for method in dict.fromkeys(one.setting.method for one in tested):
        mine = [
            one
            for one in tested
            if one.setting.method == method and has_shares(one.policy) and not one.setting.protect.get("weights")
        ]
        at_own = [one for one in mine if one.policy.protect.charged == own]
        if len(mine) < 3 or not at_own:
            continue
        best = min(at_own, key=_largest)
        like = [one for one in mine if _without_epsilon(one.setting) == _without_epsilon(best.setting)]
        if len(like) < 3:
            continue
        weights = _weigh(like, float(own.fraction))
        setting = Setting({**best.setting.protect, "weights": weights}, best.setting.trust, best.setting.min_rows)
        [with_weights] = try_settings(bench, [setting], workers=1, progress=lambda _: None)
        if isinstance(with_weights, Refused):
            continue
        before, after = _largest(best), _largest(with_weights)
        if after < BETTER * before and after < 1:
            yield Split(with_weights, before, after)


def _largest(one: Tested) -> float:
    return max(_middles(one.found).values())


def _middles(found: Simulated) -> dict[str, float]:
    return {name: float(np.median(figures["error"])) for name, figures in found.columns.items()}


def _without_epsilon(setting: Setting) -> tuple[object, ...]:
    return (*sorted((key, str(value)) for key, value in setting.protect.items() if key != "epsilon"), setting.trust)


def _weigh(like: Sequence[Tested], total: float) -> dict[str, Decimal]:
    """Weights with which all columns have the same error, as far as the settings tell."""
    curves: dict[str, tuple[Numbers, Numbers]] = {}
    for name in like[0].found.columns:
        points = sorted((float(one.policy.column_epsilon[name].fraction), _middles(one.found)[name]) for one in like)
        logs = np.log(np.maximum(np.array(points), _TINY))
        curves[name] = logs[:, 0], np.minimum.accumulate(logs[:, 1])
    low, high = -30.0, 30.0  # logarithms of the error that all have
    for _ in range(60):
        middle = (low + high) / 2
        if sum(_needs(curve, middle) for curve in curves.values()) > total:
            low = middle
        else:
            high = middle
    needed = {name: _needs(curve, high) for name, curve in curves.items()}
    least = min(needed.values())
    return {name: Decimal(f"{need / least:.{_DIGITS}g}").normalize() + 0 for name, need in needed.items()}


def _needs(curve: tuple[Numbers, Numbers], error: float) -> float:
    """The epsilon at which a column has this error; beyond the settings as the nearest two of them go on."""
    epsilons, errors = curve
    if error <= errors[-1]:
        slope = min((errors[-1] - errors[-2]) / (epsilons[-1] - epsilons[-2]), -0.1)
        return math.exp(min(epsilons[-1] + (error - errors[-1]) / slope, 50.0))
    if error >= errors[0]:
        slope = min((errors[1] - errors[0]) / (epsilons[1] - epsilons[0]), -0.1)
        return math.exp(max(epsilons[0] + (error - errors[0]) / slope, -50.0))
    return math.exp(float(np.interp(-error, -errors, epsilons)))
