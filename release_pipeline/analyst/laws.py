"""The noise distribution of a column as far as public facts determine it, and bounds on the noise if the scales are confidential.

Symbols: W, the domain in grid steps; c_j, the size of cluster j; p, the number of clusters; t_j, the noise scale of its sum; Z_j,
a discrete Laplace number of that scale. If the method's rule is public, t = ceil(W/eps) for all j, and the distribution is public
too. Other scales depend on the data and are confidential, but bounded for all data (`reach_of`). A method that the catalogue does
not have, from a later version, is declined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from statistics import NormalDist
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from release_pipeline.analyst.facts import ColumnFacts, Facts, NoHonestAnswer
from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.accounting.scales import PLAIN
from release_pipeline.mechanisms.basis.figures import format_count, join_names, show_figure
from release_pipeline.mechanisms.basis.grid import FloatArray, Grid
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.sentences import ANALYST, KIT

Kind: TypeAlias = Literal["exact", "drawn", "bound", "counts", "no noise", "none"]
LEAST_DRAWS = 50  # from this many draws, the sum of clamped draws is treated as normal; shown by simulation


@dataclass(frozen=True)
class Law:
    """The public facts about the noise of one column. `kind`:

    exact      the distribution of what was added to each value (or to each cluster's sum)
    drawn      the distribution of the noise as drawn; restoring order or domain changed it afterwards
    bound      no distribution, but a bound on the whole column's total
    counts     the distribution of the noise on counts of records, from which all values were made
    no noise   the values are exact means of clusters
    none       nothing that public facts bound

    `scale` t, in grid steps, and the `sizes` of clusters (smallest, largest) are None if the distribution is not known: the
    `description` says why.
    """

    column: str
    kind: Kind
    description: str
    scale: int | None = None
    sizes: tuple[int, int] | None = None


@dataclass(frozen=True)
class Reach:
    """Bounds on the noise of a column's total sum_j Z_j, in grid steps.

    `draws` p; `scale`: the common scale, or one that no t_j exceeds, else None; `total` >= sum t_j; `root` >= sqrt(sum t_j^2);
    `bias` >= |sum of what trimming moved|; `exact`: all scales are `scale`.
    """

    draws: int
    scale: int | None
    total: float
    root: float
    bias: int
    exact: bool


def variance_of(scale: int) -> float:
    """Return sigma^2 = 1 / (2 sinh(1/(2t))^2) of the discrete Laplace, about 2 t^2.

    >>> round(variance_of(1), 4), round(variance_of(1000) / 1e6, 4)
    (1.8413, 2.0)
    """
    return 0.5 / math.sinh(0.5 / scale) ** 2


def overshoot_of(scale: int) -> tuple[float, float]:
    """Return mean and variance of how far a discrete Laplace number is beyond a point on its way out, given that it got there:
    the geometric tail has no memory, so both are those of P[G = g] = (1 - q) q^g with q = exp(-1/t), for every point."""
    mean = 1 / math.expm1(1 / scale)
    return mean, mean * (1 + mean)


def decline_rows(facts: Facts) -> str:
    """Return why the released rows do not represent the confidential table, however a column was masked; empty if they do."""
    if facts.in_parts:
        return KIT("decline.parts")
    if facts.rows_out < facts.rows_in:
        return KIT("decline.dropped")
    if facts.rows_out > facts.rows_in:
        return KIT("decline.more_rows")
    return ""


def decline_method(facts: Facts) -> str:
    """Return why nothing is known about the method: it is from a later version, or from other software; empty if the catalogue
    has it."""
    if facts.method not in METHODS:
        return KIT("decline.method", method=facts.method)
    if facts.scope not in facts.spec.scopes:
        return KIT("decline.scope", scope=facts.scope, method=facts.method)
    if facts.by_rho and facts.spec.family == "columns":
        return KIT("decline.by_rho")
    return ""


def decline_release(facts: Facts) -> str:
    """Return why the kit cannot estimate the mean of any masked column; empty if it can estimate some."""
    return decline_rows(facts) or decline_method(facts) or facts.spec.kit.means


def law_of(facts: Facts, name: str) -> Law:
    """Return what public facts say about the noise of a masked column."""
    column = facts.masked_column(name)
    family = "" if decline_method(facts) else facts.spec.family
    if family == "by-value":
        return Law(name, "counts", KIT("law.of_counts"))
    if family == "whole-table":
        return Law(name, "counts", KIT("law.of_synthetic"))
    why = decline_release(facts)
    if why:
        return Law(name, "none", KIT("law.none", why=why))
    if not facts.spec.is_noisy:
        if column.clock is None:
            return Law(name, "no noise", KIT("law.no_noise"))
        return Law(name, "no noise", KIT("law.no_noise_whole", unit=KIT.read_section("unit")[column.clock.unit]))
    grid, _ = declared(column)
    if not facts.rule.is_public:
        try:
            reach = reach_of(facts, name)
        except NoHonestAnswer as error:
            return Law(name, "none", KIT("law.none", why=error.what))
        return Law(name, "bound", _describe_mean(facts, column, _describe_bound(facts, column, reach, float(grid.step))))
    scale = common_scale(facts, column)
    sizes = (int(facts.sizes.min()), int(facts.sizes.max()))
    law = _describe_law(facts, column, scale, sizes, float(grid.step))
    after = [KIT("law.order")] if facts.consistency == "isotonic" else []
    after += [KIT("law.ends")] if facts.clamped else []
    after += [KIT("law.rounded")] if was_rounded(facts) else []
    if not after:
        return Law(name, "exact", KIT("law.exact", law=law), scale, sizes)
    law = KIT("law.drawn", law=law, steps=KIT("law.and").join(after))
    return Law(name, "drawn", _describe_mean(facts, column, law), scale, sizes)


def was_rounded(facts: Facts) -> bool:
    """Return whether released values were moved to the nearest point of the grid, each by at most half a step. Values with whole
    steps of noise on single records are on the grid already; values left outside the domain were left off the grid too."""
    return facts.clamped and facts.on_grid and facts.spec.on_grid == "moved"


def decline_moved(facts: Facts, name: str) -> str:
    """Return why the kit cannot estimate the mean of a column whose atoms were not moved; empty if it can.

    Restoring the order keeps a column's total. Keeping atoms does not: values between two pins of an atom go to it, and the rest
    is moved to either side. The distance follows from noisy values that are not released.
    """
    moved = facts.columns[name].atoms and facts.consistency == "isotonic" and facts.spec.family == "columns"
    return KIT("decline.moved") if moved else ""


def _describe_mean(facts: Facts, column: ColumnFacts, law: str) -> str:
    """Return a description of the noise distribution, and why the kit declines the mean if it does."""
    why = decline_moved(facts, column.name)
    return KIT("law.mean", law=law, why=why) if why else law


def explain_kit(facts: Facts) -> Iterator[str]:
    """Yield what the kit offers for a release like this one, a sentence each."""
    yield KIT("kit.reads")
    if facts.tables:
        yield KIT("kit.tables", names=join_names(table.name for table in facts.tables))
    if weighted := [table.name for table in facts.tables if table.weight is not None]:
        yield KIT("kit.weighted_tables", names=join_names(weighted))
    family = "" if decline_method(facts) else facts.spec.family
    if family == "by-value":
        yield KIT("kit.counts_in_parts") if facts.in_parts else KIT("kit.counts")
        yield KIT("kit.no_slopes", why=decline_slope(facts))
        return
    if family == "whole-table":
        yield KIT("kit.synthetic")
        yield KIT("kit.rerun")
        yield KIT("kit.no_slopes", why=decline_slope(facts))
        yield KIT("kit.no_combining")
        return
    why = decline_release(facts)
    if why:
        yield KIT("kit.declines", why=why)
        return
    if not facts.spec.is_noisy:
        yield KIT("kit.exact")
    elif not facts.rule.is_public or (facts.clamped and facts.consistency != "none"):
        yield KIT("kit.mean_by_bound")
    elif not facts.clamped:
        yield KIT("kit.mean_by_law")
    elif facts.draws < LEAST_DRAWS:
        yield KIT("kit.few_draws", draws=facts.draws)
    else:
        yield KIT("kit.mean_by_law_closely")
    moved = [name for name in facts.masked if decline_moved(facts, name)]
    if moved:
        yield KIT("kit.moved", names=join_names(moved), why=decline_moved(facts, moved[0]))
    yield KIT("kit.no_slopes", why=decline_slope(facts))


def decline_slope(facts: Facts) -> str:
    """Return why released rows do not show how columns are related; empty if they do."""
    return decline_method(facts) or (KIT("decline.swapped") if facts.is_swapped else facts.spec.kit.slopes)


def declared(column: ColumnFacts) -> tuple[Grid, Epsilon]:
    """Return grid and epsilon of a column with noise."""
    if column.grid is None or column.epsilon is None:
        raise NoHonestAnswer("the card declares no domain, grid or epsilon for it.", where=column.name)
    return column.grid, column.epsilon


def common_scale(facts: Facts, column: ColumnFacts) -> int:
    """Return the scale of every sum, as the release computed it, for a method with a public scale."""
    grid, epsilon = declared(column)
    scale = facts.rule.public_scale(grid.width, epsilon)
    if scale is None:
        raise NoHonestAnswer("the noise scales depend on the data and are not published.", where=column.name)
    return scale


def reach_of(facts: Facts, name: str) -> Reach:
    """Return bounds on the noise of a column's total that hold for all confidential data: from the rule for its scales
    (`mechanisms.accounting.scales`), and from how far its kind of sum can have moved the total."""
    grid, epsilon = declared(facts.masked_column(name))
    sums = facts.spec.sums or PLAIN
    bounds = facts.rule.bound_all(sums, k=facts.k or 1, sizes=facts.sizes, width=grid.width, epsilon=epsilon)
    if bounds is None:
        raise NoHonestAnswer(KIT("decline.rounding"), where=name, remedy=ANALYST("advice.ask"))
    return Reach(facts.draws, bounds.scale, bounds.total, bounds.root, sums.bias * grid.width, facts.rule.is_public)


def _describe_law(facts: Facts, column: ColumnFacts, scale: int, sizes: tuple[int, int], step: float) -> str:
    deviation, t = _show_amount(column, math.sqrt(variance_of(scale)) * step), format_count(scale)
    if facts.spec.by_record:
        return KIT("law.of_records", scale=t, deviation=deviation)
    clusters, size, last = map(format_count, (facts.draws, *sizes))
    if size == last:
        return KIT("law.of_clusters", clusters=clusters, size=size, scale=t, deviation=deviation)
    return KIT("law.of_clusters_but_the_last", clusters=clusters, size=size, last=last, scale=t, deviation=deviation)


def _show_amount(column: ColumnFacts, amount: float) -> str:
    return show_figure(amount) if column.clock is None else column.clock.name_span(show_figure(amount))


def _describe_bound(facts: Facts, column: ColumnFacts, reach: Reach, step: float) -> str:
    deviation = _show_amount(column, math.sqrt(2) * reach.root * step / facts.rows_in)
    bias = _show_amount(column, reach.bias * step / facts.rows_in)
    law = KIT("law.bound_trimmed", deviation=deviation, bias=bias) if reach.bias else KIT("law.bound", deviation=deviation)
    if not facts.clamped:
        return law
    return KIT("law.bound_ends_rounded", law=law) if was_rounded(facts) else KIT("law.bound_ends", law=law)


# How far a sum of discrete Laplace or Gaussian numbers is from 0, with a given probability: exactly if the scales are known, and
# as an upper bound if only their squares are bounded, or numbers have weights.


_BINS = 20_000
_EXACT_UP_TO = 2_000.0  # standard deviations in steps, up to which probabilities are added up number by number


def check_level(level: float) -> None:
    """Refuse a level that no interval can have: it is a probability between 0 and 1."""
    given: object = level
    if isinstance(given, bool) or not isinstance(given, Real):
        raise InvalidType("the level is a number between 0.5 and 1, like 0.95.", where="level")
    if not 0.5 <= level < 1:
        raise InvalidArgument("the level lies between 0.5 and 1, like 0.95.", where="level")


@lru_cache(maxsize=256)
def quantile_of_sum(scale: int, draws: int, level: float) -> int:
    """Return the least m with P[|Z_1 + .. + Z_p| <= m] >= level, for p independent discrete Laplace numbers of one scale.

    Up to a standard deviation of 2,000 steps the probabilities are added up: they are the Fourier coefficients of
    (1 + 2 sigma^2 sin(u/2)^2)^-p. Above it a step matters to the sixth digit: the sum is then as a normal number of variance
    sigma^2 G, where G is gamma distributed with shape p (each Laplace number is a normal one of exponential variance, AM74).

    >>> quantile_of_sum(1, 1, 0.95), quantile_of_sum(1000, 1, 0.95), round(quantile_of_sum(1000, 100, 0.95) / 14142, 2)
    (3, 2996, 1.96)
    """
    check_level(level)
    deviation = math.sqrt(variance_of(scale) * draws)
    if deviation <= _EXACT_UP_TO:
        places = 1 << math.ceil(math.log2(80 * deviation + 64))
        angle = np.sin(np.pi * np.arange(places // 2 + 1) / places)
        law = np.fft.irfft((1 + 2 * variance_of(scale) * angle**2) ** -float(draws), places)
        inside = law[0] + np.concatenate([[0.0], 2 * np.cumsum(law[1 : places // 2])])
        return int(np.searchsorted(inside, level - 1e-12))
    import scipy.optimize  # both take long to import: only where they are used
    import scipy.special

    special, optimize = cast(Any, scipy.special), cast(Any, scipy.optimize)
    spread = np.sqrt(special.gammaincinv(draws, (np.arange(_BINS) + 0.5) / _BINS) / draws)

    def excess(m: float) -> float:
        beyond: FloatArray = 2 * special.ndtr(-m / spread)
        return float(beyond.mean()) - (1 - level)

    return math.ceil(optimize.brentq(excess, 0.01, 50.0) * deviation)


@lru_cache(maxsize=1)
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss' rule on (-1, 1); computing them takes longer than using them."""
    places, weights = np.polynomial.legendre.leggauss(400)
    return places.astype(np.float64), weights.astype(np.float64)


@lru_cache(maxsize=4096)
def worst_quantile(level: float, draws: int = 1) -> float:
    """Return z with P[|X_1 + .. + X_p| > z sd] <= 1 - level for independent Laplace numbers of *any* scales, `sd` that of the
    sum, as long as none has more than 1/`draws` of the variance.

    X_j is a normal number of variance 2 s_j^2 E_j, E_j exponential with mean 1 (AM74), so that P[|sum| > z sd] = E f(Y) with
    f(y) = 2 Phi(-z / sqrt(y)) and Y = sum a_j E_j, a_j = s_j^2 / sum s^2. For convex h, E h(sum a_j E_j) is a convex symmetric
    function of a, so it is largest at the corners of a_j <= 1/q, where q of them are 1/q (q = `draws`): E h(Y) <= E h(G), G the
    mean of q of the E_j, gamma distributed. f is convex up to y = z^2/3 and concave from there on; h follows f and then its
    tangent: convex, and nowhere below f. So E f(Y) <= E h(G), which with B = z^2/3 is

        E[f(G); G < B] + f(B) P[G > B] + f'(B) E[G - B; G > B],    f'(y) = z y^(-3/2) phi(z / sqrt(y))

    A single Laplace number reaches 2.12 at 95%, a normal one 1.96; Gauss' inequality for unimodal sums would say 2.98.

    >>> round(worst_quantile(0.95), 2), round(worst_quantile(0.95, 20), 2), round(worst_quantile(0.95, 1000), 2)
    (2.16, 1.97, 1.96)
    """
    check_level(level)

    import scipy.optimize
    import scipy.special

    optimize: Any = scipy.optimize
    special: Any = scipy.special
    q = float(draws)
    least, most = (float(special.gammaincinv(q, share)) / q for share in (1e-18, 1 - 1e-15))
    places, weights = _nodes()

    def excess(z: float) -> float:
        bend = z * z / 3
        half = max(min(bend, most) - least, 0.0) / 2
        y = least + half * (places + 1)
        density = np.exp(q * math.log(q) + (q - 1) * np.log(y) - q * y - math.lgamma(q))
        before = half * float(weights @ (special.erfc(z / np.sqrt(2 * y)) * density))
        above = float(special.gammaincc(q, q * bend))
        slope = z * bend**-1.5 * math.exp(-1.5) / math.sqrt(2 * math.pi)
        beyond = float(special.gammaincc(q + 1, q * bend)) - bend * above
        return before + above * math.erfc(math.sqrt(1.5)) + slope * max(beyond, 0.0) - (1 - level)

    return float(optimize.brentq(excess, 0.5, 60.0)) * (1 + 1e-7)


def bound_sum(root: float, draws: int, level: float) -> float:
    """Return x with P[|Z_1 + .. + Z_p| > x] <= 1 - level for discrete Laplace numbers whose scales have sqrt(sum t_j^2) <= root.

    Let U be uniform on (-1/2, 1/2). Z + U is more concentrated about 0 than a Laplace number of scale s = 1/(2 tanh(1/(2t))):
    with a = tanh(1/(2t)), P[|Z + U| > m + v/2] = q^m (1 - v a) for whole m >= 0 and v in [-1, 1] (m = 0: v >= 0), and q^m <=
    exp(-2ma), 1 - va <= exp(-va). Both distributions are symmetric and unimodal, so the sums keep that order (Bir48). s <= t +
    1/12, so the Laplace sum has a standard deviation of at most sqrt(2) (root + sqrt(p)/12), and `worst_quantile` bounds it. The
    U_j are taken away again: |sum U_j| > 3.3 sqrt(p) has probability below 1e-9 (Hoe63), which the level is raised by.
    """
    raised = 1 - (1 - level) * (1 - 1e-8)
    return worst_quantile(raised) * math.sqrt(2) * (root + math.sqrt(draws) / 12) + 3.3 * math.sqrt(draws)


def bound_magnitudes(total: float, root: float, draws: int, level: float) -> float:
    """Return x with P[|Z_1| + .. + |Z_p| > x] <= 1 - level for scales with sum t_j <= total and sqrt(sum t_j^2) <= root.

    P[|Z| >= m] = 2 q^m / (1 + q) <= q^(m - 1/2) = P[t E + 1/2 >= m] for an exponential E, so that the sum is at most sum t_j E_j
    + p/2 in distribution: mean sum t_j, variance sum t_j^2, and Cantelli's inequality.
    """
    return total + root * math.sqrt(level / (1 - level)) + draws / 2


def bound_equal_magnitudes(scale: int, draws: int, level: float) -> float:
    """Return x as in `bound_magnitudes` if no scale exceeds `scale`: sum |Z_j| <= t (E_1 + .. + E_p) + p/2 in distribution, and
    that sum is gamma distributed."""
    import scipy.special

    special: Any = scipy.special
    return scale * float(special.gammaincinv(draws, level)) + draws / 2


def bound_weighted(weights: FloatArray, scale: int, level: float) -> float:
    """Return x with P[|w_1 Z_1 + .. + w_p Z_p| > x] <= 1 - level for discrete Laplace numbers of one scale t.

    As in `bound_sum`: w_j (Z_j + U_j) is more concentrated than a Laplace number of scale |w_j| (t + 1/12), and |sum w_j U_j|
    is above 3.3 sqrt(sum w_j^2) with probability below 1e-9 (Hoe63). None has a larger part of the variance than the heaviest.
    """
    raised = 1 - (1 - level) * (1 - 1e-8)
    size = float(np.sqrt(weights @ weights))
    if size == 0:
        return 0.0
    alike = max(int(float(weights @ weights) / float(np.max(weights * weights))), 1)
    return (worst_quantile(raised, alike) * math.sqrt(2) * (scale + 1 / 12) + 3.3) * size


@lru_cache(maxsize=4096)
def quantile_of_gaussian(variance: Fraction, draws: int, level: float) -> int:
    """Return the least m with P[|Z_1 + .. + Z_p| <= m] >= level, for p independent discrete Gaussian numbers of one variance: by
    convolving their distribution; above a standard deviation of 2,000 steps as a normal number, from which it differs by less
    than a step.

    >>> quantile_of_gaussian(Fraction(1), 1, 0.95), quantile_of_gaussian(Fraction(10**8), 4, 0.95)
    (2, 39200)
    """
    check_level(level)
    square = float(variance)
    deviation = math.sqrt(square * draws)
    if deviation > _EXACT_UP_TO:
        return math.ceil(NormalDist().inv_cdf((1 + level) / 2) * deviation)
    places = 1 << math.ceil(math.log2(24 * deviation + 64))
    number = np.fft.fftfreq(places, 1 / places)
    density = np.exp(-(number**2) / (2 * square))
    law = np.fft.irfft(np.fft.rfft(density / density.sum()) ** draws, places)
    inside = law[0] + np.concatenate([[0.0], 2 * np.cumsum(law[1 : places // 2])])
    return int(np.searchsorted(inside, level - 1e-12))


def bound_gaussian(weights: FloatArray, variance: Fraction, level: float) -> float:
    """Return x with P[|w_1 Z_1 + .. + w_p Z_p| > x] <= 1 - level for discrete Gaussian numbers of one variance v: they are
    sub-Gaussian with variance v (CKS20), so that the probability is at most 2 exp(-x^2 / (2 v sum w_j^2))."""
    return math.sqrt(2 * float(variance) * float(weights @ weights) * math.log(2 / (1 - level)))
