"""Links between columns that have noise of a known law: regression and correlation, corrected for attenuation.

Only for `laplace` with values left where the noise put them: there the noise of a column is independent of every value and of
every other column, with known variance and fourth cumulant. Noise in an explanatory variable draws its slope towards 0 and moves
the others; the corrected slope is that of the confidential table, on the declared grid, and its interval is about the noise
alone.

Columns without noise among themselves have their ordinary slopes and correlations, exactly, whatever the method.

The kit declines on what was released. The promise is therefore about all releases: in at most a share 1 - level of them is an
interval given that misses. Where it declines most releases, those that it answers miss more often than that among themselves.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from release_pipeline.analyst.facts import Facts, NoHonestAnswer, check_name
from release_pipeline.analyst.laws import (
    LEAST_ROWS,
    advise,
    check_level,
    common_scale,
    declared,
    decline_release,
    decline_rows,
    decline_slope,
    fourth_cumulant_of,
    worst_quantile,
)
from release_pipeline.analyst.laws import variance_of as variance
from release_pipeline.analyst.means import Interval
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray
from release_pipeline.sentences import ANALYST

LEAST_PART = 5e-5  # of its spread that a column must have beside the others, where there is noise
LEAST_PART_EXACTLY = 1e-10  # and where there is none
NORMAL_UP_TO = 0.9  # one Laplace number lies within 1.64 standard deviations, or fewer, more often than a normal one
ENOUGH = 1000  # draws of equal weight whose sum is told from a normal number by no more than a ten-thousandth
CLEARLY = 4.0  # standard deviations above 0 that what is left after the correction must have in every direction
TOO_LARGE = "the noise is too large for it: what is left of the spread after the correction is not clearly above 0."


@dataclass(frozen=True)
class _Sums:
    """Centred released columns x (records by columns) and y, the noise variances of x and of y, the fourth cumulants of x, and
    M = x'x, m = x'y; `left` = M - (n - 1) Sigma estimates the confidential x'x."""

    x: FloatArray
    y: FloatArray
    noise: FloatArray
    cumulant: FloatArray
    noise_y: float
    cumulant_y: float
    step_y: float = 0.0

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def noisy(self) -> bool:
        return bool(self.noise.any()) or self.noise_y > 0

    @property
    def squares(self) -> FloatArray:
        return self.x.T @ self.x

    @property
    def left(self) -> FloatArray:
        return self.squares - (self.n - 1) * np.diag(self.noise)


def estimate_slopes(
    facts: Facts, data: Mapping[str, Any], y: str, on: Sequence[str], exact: Sequence[str], level: float
) -> dict[str, Interval]:
    """The slopes of the least-squares line of `y` on `on` (with an intercept) in the confidential table, each with its interval.

    Released are x + u and y + v. The corrected slopes solve (M - (n - 1) Sigma) b = m. They are the zero of the sum over records
    of

        psi(b) = (x + u) ((y + v) - (x + u)'b) + Sigma b

    which at the slopes beta of the confidential table, with its residuals e and r = v - u'beta, is  x e + x r + u e + u r + Sigma
    beta. sum x e = 0; E[u r] = -Sigma beta; the noise is symmetric, so that terms of odd order have mean 0 and the cross terms
    with E[r u'] e x add up to 0. With s = sigma_v^2 + beta'Sigma beta (the variance of r), the sum has mean 0 and covariance

        Sxx s + (sum e^2) Sigma + n (s Sigma + Sigma beta beta'Sigma + diag(beta_a^2 kappa_a))

    kappa the fourth cumulants of u. Sxx = M - n Sigma and sum e^2 = (released squares of residuals) - n s are put in: what
    remains is M s + (squares - n s) Sigma + n (Sigma beta beta'Sigma + diag(beta^2 kappa)).

    For one variable the interval has all b whose psi(b) is within z standard deviations of 0 (Fieller's way), which needs no
    division by a noisy number; where that set has no end the kit declines. For several it is b plus and minus z standard errors,
    and the kit declines unless M - (n - 1) Sigma is clearly above 0 in every direction. z is a normal number's where many records
    decide, and larger where a few do, since one record's noise is not normal (`_factor`). Without any noise the interval is a
    point.
    """
    check_level(level)
    if not on or len(set(on)) != len(on) or y in on:
        raise InvalidArgument("name one explained column and one or more different explanatory ones.", where=y)
    sums = _collect(facts, data, y, list(on), set(exact), "no slope")
    _check_spread(sums, on, "no slope")
    if not sums.noisy:
        fit: FloatArray = np.linalg.lstsq(sums.x, sums.y, rcond=None)[0].astype(np.float64)
        return {name: _state(float(b), level, "slope") for name, b in zip(on, fit, strict=True)}
    if len(on) == 1:
        return {on[0]: _invert(sums, level, on[0])}
    left = sums.left
    if not _is_clearly_positive(sums):
        raise NoHonestAnswer(f"no slope: {TOO_LARGE}", where=", ".join(on), remedy="Use fewer columns, or simulate.")
    b: FloatArray = np.linalg.solve(left, sums.x.T @ sums.y).astype(np.float64)
    inverse = np.linalg.inv(left)
    spread = np.diag(inverse @ _covariance(sums, b) @ inverse)
    if (spread < 0).any():  # an estimate of squares that is below 0: what is left of them is not told from noise
        raise NoHonestAnswer(f"no slope: {TOO_LARGE}", where=", ".join(on), remedy=ANALYST("advice.simulate"))
    return {
        name: _around(sums, float(b[place]), _draws(sums, b, inverse[place]), float(spread[place]), level, place)
        for place, name in enumerate(on)
    }


def estimate_correlation(facts: Facts, data: Mapping[str, Any], x: str, y: str, exact: Sequence[str], level: float) -> Interval:
    """Pearson's correlation of two columns in the confidential table, with its interval.

    r = m / sqrt(A_x A_y), A = M - (n - 1) sigma^2. By the delta method from Var m = Sxx sigma_v^2 + Syy sigma_u^2 + n sigma_u^2
    sigma_v^2, Var M_x = 4 Sxx sigma_u^2 + n (kappa_u + 2 sigma_u^4), Cov(m, M_x) = 2 Sxy sigma_u^2 and the same for y. What lies
    beyond 1 is cut off.
    """
    check_level(level)
    check_name(x)
    check_name(y)
    if x == y:
        raise InvalidArgument("a correlation needs two different columns.", where=x)
    one, other = (_collect(facts, data, b, [a], set(exact), "no correlation") for a, b in ((x, y), (y, x)))
    _check_spread(one, [x], "no correlation")
    _check_spread(other, [y], "no correlation")
    if not one.noisy:
        plain = float(one.x[:, 0] @ one.y / (np.linalg.norm(one.x[:, 0]) * np.linalg.norm(one.y)))
        return _state(min(max(plain, -1.0), 1.0), level, "correlation")
    if not (_is_clearly_positive(one) and _is_clearly_positive(other)):
        raise NoHonestAnswer(f"no correlation: {TOO_LARGE}", where=f"{x}, {y}", remedy=ANALYST("advice.simulate"))
    n, m = one.n, float(one.x[:, 0] @ one.y)
    a_x, a_y = float(one.left[0, 0]), float(other.left[0, 0])
    r = m / math.sqrt(a_x * a_y)
    u, v = float(one.noise[0]), float(other.noise[0])
    gradient = np.array([1 / math.sqrt(a_x * a_y), -r / (2 * a_x), -r / (2 * a_y)])
    spread = np.array(
        [
            [a_x * v + a_y * u + n * u * v, 2 * m * u, 2 * m * v],
            [2 * m * u, 4 * a_x * u + n * (float(one.cumulant[0]) + 2 * u * u), 0.0],
            [2 * m * v, 0.0, 4 * a_y * v + n * (float(other.cumulant[0]) + 2 * v * v)],
        ]
    )
    whole = float(gradient @ spread @ gradient)
    # one draw of u moves r by (y - r x sqrt(A_y/A_x)) / sqrt(A_x A_y), one of v by the same with x and y exchanged
    own = u * np.square(one.y / math.sqrt(a_x * a_y) - r * one.x[:, 0] / a_x)
    own = np.maximum(own, v * np.square(one.x[:, 0] / math.sqrt(a_x * a_y) - r * one.y / a_y))
    half = _factor(float(own.max()), whole, level) * math.sqrt(max(whole, 0.0))
    estimate, low, high = (min(max(end, -1.0), 1.0) for end in (r, r - half, r + half))
    if high - low <= 0:
        raise NoHonestAnswer(f"no correlation: {TOO_LARGE}", where=f"{x}, {y}", remedy=ANALYST("advice.simulate"))
    both = "both columns" if u and v else f"{x}; {y} has none" if u else f"{y}; {x} has none"
    return Interval(estimate, low, high, level, "law", f"Corrected for the noise of {both}.")


def _collect(facts: Facts, data: Mapping[str, Any], y: str, on: list[str], exact: set[str], what: str) -> _Sums:
    """The centred columns and the law of their noise, or why there is none."""
    for name in (*on, y):
        if name not in data or (name not in exact and name not in facts.columns):
            raise InvalidArgument("the release has no such column.", where=name, remedy=f"It has {', '.join(data)}.")
    noisy = any(not is_exact(facts, name, exact) for name in (*on, y))
    why = (decline_release(facts) or decline_slope(facts)) if noisy else decline_rows(facts)
    if why:
        raise NoHonestAnswer(f"{what}: {why}", where=y, remedy=advise(facts))
    columns = [read_numbers(data, name, exact) for name in (*on, y)]
    least = LEAST_ROWS if noisy else 2
    if any(len(column) != facts.rows_out for column in columns) or facts.rows_out < least:
        raise NoHonestAnswer(
            f"{what}: it takes all rows of the release, and {least} of them at the least.", where=y, remedy=advise(facts)
        )
    laws = [_noise(facts, name, exact) for name in (*on, y)]
    columns = [column - column[0] for column in columns]  # a constant column becomes 0 exactly, which its mean would not do
    x = np.column_stack(columns[:-1])
    return _Sums(
        x=x - x.mean(axis=0),
        y=columns[-1] - columns[-1].mean(),
        noise=np.array([law[0] for law in laws[:-1]]),
        cumulant=np.array([law[1] for law in laws[:-1]]),
        noise_y=laws[-1][0],
        cumulant_y=laws[-1][1],
        step_y=laws[-1][2],
    )


def is_exact(facts: Facts, name: str, exact: Container[str]) -> bool:
    """Whether a column has no noise: the analyst's own, or one that was released as it is."""
    return name in exact or facts.is_exact(name)


def read_numbers(data: Mapping[str, Any], name: str, exact: Container[str]) -> FloatArray:
    """A column as finite numbers, yes and no as 1 and 0; or why it is none."""
    values = np.asarray(data[name])
    if values.dtype.kind not in "biuf":
        raise InvalidArgument(
            "this column is not one of numbers.", where=name, remedy="Make columns of 0 and 1 from it and add them (with_exact)."
        )
    numbers = values.astype(np.float64)
    bad = int(np.count_nonzero(~np.isfinite(numbers)))
    if bad and (name in exact or np.isinf(numbers).any()):
        raise InvalidArgument(f"{bad:,} of its numbers are missing or infinite.", where=name, remedy="Give each row a number.")
    if bad and f"{name}_missing" in data:
        raise NoHonestAnswer(
            "records without a value are not like the others: leaving their rows out would change the estimand.",
            where=name,
            remedy=f"Make a column of 0 and 1 in which they have a place of their own ({name}_missing), and add it (with_exact).",
        )
    if bad:
        raise NoHonestAnswer(
            "blank cells protect small groups and are not missing at random: leaving their rows out would change the estimand.",
            where=name,
            remedy="Make a column of 0 and 1 from it in which blank has a place of its own, and add it (with_exact).",
        )
    return numbers


def _noise(facts: Facts, name: str, exact: set[str]) -> tuple[float, float, float]:
    """Variance and fourth cumulant of a column's noise, and its step, in its own unit; none in a kept one."""
    if is_exact(facts, name, exact):
        return 0.0, 0.0, 0.0
    column = facts.masked_column(name)
    step, t = float(declared(column)[0].step), common_scale(facts, column)
    return variance(t) * step**2, fourth_cumulant_of(t) * step**4, step


def _covariance(sums: _Sums, b: FloatArray) -> FloatArray:
    """Of the sum of psi(b), as `estimate_slopes` derives it."""
    noise = np.diag(sums.noise)
    s = sums.noise_y + float(b @ noise @ b)
    residual = sums.y - sums.x @ b
    moved = noise @ b
    return (
        sums.squares * s
        + (float(residual @ residual) - sums.n * s) * noise
        + sums.n * (np.outer(moved, moved) + np.diag(b * b * sums.cumulant))
    )


def _draws(sums: _Sums, b: FloatArray, direction: FloatArray) -> tuple[float, float]:
    """How much one draw of the noise adds at the most to the variance of direction'psi(b), and how much it moves it per unit.

    Of first order in the noise, direction'psi(b) = sum_i w_i v_i + sum_ia (direction_a e_i - w_i b_a) u_ia, w = x direction: a
    weighted sum of independent numbers. Without noise in x that is all of it, and w is known; else released values stand for
    the confidential ones.
    """
    weights = sums.x @ direction
    residual = sums.y - sums.x @ b
    largest = sums.noise_y * float(np.max(weights**2))
    for place in np.flatnonzero(sums.noise):
        of_u = residual * direction[place] - weights * b[place]
        largest = max(largest, float(sums.noise[place] * np.max(of_u**2)))
    return largest, float(np.max(np.abs(weights)))


def _factor(largest: float, whole: float, level: float) -> float:
    """z for an error of variance `whole`, of which no draw has more than `largest`: between a normal number's and the worst.

    Proved for sums of Laplace numbers with known weights. Where the weights are taken from released values it is a plug-in, as
    the variance is; simulations with one, two, five and ten deciding records found no misses beyond the level.
    """
    if level <= NORMAL_UP_TO:
        return NormalDist().inv_cdf((1 + level) / 2)
    draws = whole / largest * (1 + 1e-9) if largest > 0 else 1.0
    return worst_quantile(level, int(min(max(draws, 1.0), ENOUGH)))


def _around(sums: _Sums, b: float, draws: tuple[float, float], spread: float, level: float, place: int) -> Interval:
    """The interval of one of several slopes."""
    half = _factor(draws[0], spread, level) * math.sqrt(spread)
    half += 0.0 if sums.noise.any() else draws[1] * sums.step_y / 2  # Laplace numbers are not on a grid, the noise is
    return Interval(b, b - half, b + half, level, "law", _corrected(sums, place))


def _invert(sums: _Sums, level: float, name: str) -> Interval:
    """All b with (m - b A)^2 <= z^2 V(b): V is a square in b, so the set lies between two roots, or has no end."""
    big, m, a = float(sums.squares[0, 0]), float(sums.x[:, 0] @ sums.y), float(sums.left[0, 0])
    u, kappa = float(sums.noise[0]), float(sums.cumulant[0])
    # V(b) = v0 - 2 m u b + v2 b^2, from M s + (y'y - 2 b m + b^2 M - n s) u + n (b^2 u^2 + b^2 kappa) with s = noise_y + b^2 u
    v0 = big * sums.noise_y + (float(sums.y @ sums.y) - sums.n * sums.noise_y) * u
    v2 = 2 * big * u + sums.n * kappa
    if a <= 0:
        raise NoHonestAnswer(f"no slope: {TOO_LARGE}", where=name, remedy=ANALYST("advice.simulate"))
    b, noisy = m / a, bool(u)
    largest, weight = _draws(sums, np.array([b]), np.ones(1))
    z = _factor(largest, v0 - 2 * m * u * b + v2 * b * b, level)
    square, middle, rest = a * a - z * z * v2, m * a - z * z * m * u, m * m - z * z * v0
    inside = middle * middle - square * rest
    if square <= 0 or inside < 0:
        raise NoHonestAnswer(f"no slope: {TOO_LARGE}", where=name, remedy=ANALYST("advice.simulate"))
    low, high = ((middle + sign * math.sqrt(inside)) / square for sign in (-1, 1))
    lattice = 0.0 if noisy else weight / a * sums.step_y / 2
    return Interval(b, low - lattice, high + lattice, level, "law", _corrected(sums, 0))


def _check_spread(sums: _Sums, on: Sequence[str], what: str) -> None:
    """Every column of `on` varies, and none follows from those before it: where that fails it is no matter of noise."""
    norms = np.linalg.norm(sums.x, axis=0)
    for name, norm in zip(on, norms, strict=True):
        if not norm:
            raise NoHonestAnswer(f"{what}: this column is constant, the same in all rows.", where=name, remedy="Leave it out.")
    part = np.zeros(len(on))
    part[: sums.n] = np.abs(np.diag(np.linalg.qr(sums.x / norms, mode="r")))
    for name, left in zip(on, part, strict=True):
        if left <= (LEAST_PART if sums.noisy else LEAST_PART_EXACTLY):
            raise NoHonestAnswer(
                f"{what}: this column follows from the others, exactly or nearly.", where=name, remedy="Leave one of them out."
            )


def _is_clearly_positive(sums: _Sums) -> bool:
    """Whether a'(M - (n - 1) Sigma)a is `CLEARLY` standard deviations above 0 for its weakest directions, on scales of one."""
    spread = np.sqrt(np.diag(sums.squares))
    if not spread.all():
        return False
    left = sums.left / np.outer(spread, spread)
    for value, direction in zip(*np.linalg.eigh(left), strict=True):
        a = direction / spread
        noise = float(a * a @ sums.noise)
        error = 4 * max(value, 0.0) * noise + sums.n * (float(a**4 @ sums.cumulant) + 2 * noise * noise)
        if value <= max(CLEARLY * math.sqrt(error), 1e-9):
            return False
    return True


def _corrected(sums: _Sums, place: int) -> str:
    if not sums.noise[place]:
        return "No noise in this column: nothing to correct. The interval is about the noise of the others."
    share = float(sums.left[place, place] / sums.squares[place, place])
    return f"Corrected for attenuation: {share:.0%} of this column's released spread is not noise."


def _state(figure: float, level: float, what: str) -> Interval:
    return Interval(figure, figure, figure, level, "exact", f"No noise: the ordinary {what} of the released columns is exact.")
