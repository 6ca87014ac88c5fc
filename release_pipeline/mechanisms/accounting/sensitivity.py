"""How far one changed record can move the published sums, what that costs, and the noise scales that follow.

All figures are integers in grid units of the cluster *sum*. Propositions 8 and 9 are IDP24's; the accountant and the
least-error calibration are this project's (methods.md section 2), checked against brute force over all neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.rank import RankClusters
from release_pipeline.mechanisms.noise import MAX_SCALE

_FEW = 64  # with so few different scales the loss is summed as exact fractions
HEADROOM = 2.0**-30  # margin below epsilon, so that rounding cannot carry the loss above it
_TOO_SMALL = "epsilon is too small for this domain and grid: the noise would not fit 64-bit integers."


@dataclass(frozen=True, slots=True, repr=False)
class Moves:
    """The largest change of each published sum when a record moves up (or down) in the order, re-clustering included.

    A record that moves up makes every cluster on its way lose its lowest value and gain the next one's lowest; the worst one
    goes from the first rank to the upper end W, the worst downward one from the last rank to 0. Both directions change every
    cluster by exactly these amounts at once, so the joint loss is a sum (the accountant), and each single one a maximum.
    """

    up: IntArray
    down: IntArray

    @property
    def worst(self) -> IntArray:
        """Return the larger of both, per cluster."""
        return np.maximum(self.up, self.down)


def plain_moves(clusters: RankClusters, width: int) -> Moves:
    """Return the moves of plain cluster sums.

    up_j = first value of cluster j+1 (W for the last) - first value of cluster j;
    down_j = last value of cluster j - last value of cluster j-1 (0 for the first).
    """
    first, last = clusters.first(0), clusters.last(0)
    return Moves(np.diff(first, append=width), np.diff(last, prepend=0))


def trimmed_moves(clusters: RankClusters) -> Moves:
    """Return the moves of trimmed cluster sums: the two expressions of IDP24 Prop. 9, for sorted values x_1..x_n of a cluster.

    up = (x_n - x_2) + (x_3 - x_2) + (x_n - x_{n-1});  down = (x_{n-1} - x_1) + (x_{n-1} - x_{n-2}) + (x_2 - x_1).
    Their maximum is the sensitivity D; it is 0 if and only if all values of the cluster are equal.
    """
    x1, x2, x3 = (clusters.first(i) for i in range(3))
    y1, y2, y3 = (clusters.last(i) for i in range(3))
    return Moves((y1 - x2) + (x3 - x2) + (y1 - y2), (y2 - x1) + (y2 - y3) + (x2 - x1))


def prop8_sensitivity(clusters: RankClusters, width: int) -> IntArray:
    """Return, by IDP24 Prop. 8, max(W - x_1, x_n): the most that replacing one member changes the plain sum of its cluster."""
    return np.maximum(width - clusters.first(0), clusters.last(0))


def trimmed_sums(clusters: RankClusters) -> IntArray:
    """Return cluster sums with the smallest value replaced by the second smallest and the largest by the second largest."""
    if int(clusters.size.min()) < 3:
        raise InvalidArgument("trimmed sums need clusters of at least three records.", remedy="Set k to 3 or more.")
    return clusters.sums() - clusters.first(0) + clusters.first(1) - clusters.last(0) + clusters.last(1)


def refuse_scale(clusters: int | None = None) -> InvalidArgument:
    """Return the error for noise that would not fit; `clusters` if their number is a part of the reason."""
    if clusters is None:
        return InvalidArgument(_TOO_SMALL, remedy="Use a larger epsilon, a coarser grid or a narrower domain.")
    of = "1 cluster" if clusters == 1 else f"{clusters:,} clusters"
    what = f"epsilon is too small for this domain and grid with {of}: the noise might not fit 64-bit integers."
    return InvalidArgument(what, remedy="Use a larger epsilon, a larger k, a coarser grid or a narrower domain.")


def calibrated_reach(reach: int, clusters: int, *, stretch: float = 1.0) -> float:
    """Return the largest t_j eps / W that `calibrate_column` can take for p clusters, over all data, for a cluster of k records.
    `reach` is B, the largest sum of the moves of all clusters, in widths W (`scales.Sums`).

    Before it rounds up it takes t_j = (A_j c_j)^(1/3) sum_i A_i^(2/3) c_i^(-1/3) / eps, c being the sizes, times the factor
    loss / eps, which is at most 1: the loss is at most sum A_i / t_i = eps. All sizes are at least k. Let A_j = x B W. The other
    moves add up to at most (1 - x) B W, so that by Hoelder's inequality

        t_j eps / W  <=  B (x + s x^(1/3) (1 - x)^(2/3) (p - 1)^(1/3)),    s = (c_j / k)^(1/3),

    and the largest over x counts: `stretch` is s, 1 for a cluster of k. Where all other moves are equal it is attained. The right
    side is concave in x: 2,001 points miss its largest by less than the thousandth added, which covers the headroom of the
    calibration and every rounding too (`HEADROOM` is 10^-9); `ceil` adds at most 1 to a scale.
    """
    x = np.linspace(0, 1, 2001)
    return reach * float(np.max(x + stretch * np.cbrt(x * (1 - x) ** 2 * (clusters - 1)))) * 1.001


def scales_for(sensitivity: IntArray, epsilon: Epsilon) -> IntArray:
    """Return t = ceil(sensitivity / epsilon), exactly; 0 if the sensitivity is 0.

    A discrete Laplace of integer scale t changes its log-probability by at most d/t when its centre moves by d; t >= d/epsilon
    makes that at most epsilon, and rounding up only adds privacy. With epsilon = a/b in lowest terms, d = q a + r:
    t = q b + ceil(r b / a), which never leaves 64 bits where the result fits.

    >>> scales_for(np.array([0, 1, 7]), Epsilon.of("0.7")).tolist()
    [0, 2, 10]
    """
    a, b = epsilon.fraction.numerator, epsilon.fraction.denominator
    if a == 0:
        raise InvalidArgument("epsilon must be above 0 for noise to exist.")
    if int(sensitivity.max()) * b > MAX_SCALE * a:
        raise refuse_scale()
    if (a - 1) * b >= 2**63:  # only for epsilon above 9 with nine decimals
        return np.array([-(-int(d) * b // a) for d in sensitivity], dtype=np.int64)
    whole, rest = np.divmod(sensitivity, a)
    return whole * b + -(-(rest * b) // a)


def centroid_loss(moves: Moves, scales: IntArray) -> Fraction | float:
    """Return the worst loss of one published sum by itself, re-clustering included: max_j max(up_j, down_j) / t_j."""
    worst = moves.worst
    if np.any((scales == 0) & (worst > 0)):
        return np.inf
    if not scales.any():
        return Fraction(0)
    ratio = np.divide(worst, scales, out=np.zeros(len(scales)), where=scales > 0)
    j = int(ratio.argmax())  # correctly rounded ratios are monotone: no other one is larger by more than its last bit
    return Fraction(int(worst[j]), int(scales[j]))


def column_loss(moves: Moves, scales: IntArray) -> Fraction | float:
    """Return the joint loss (the accountant): max(sum_j up_j/t_j, sum_j down_j/t_j), where 0/0 counts as 0 and x/0 is infinite.

    Exact for one common scale and for at most 64 moving clusters; for p of them an upper bound that exceeds the truth by less
    than p 2^-b, with b >= 59 - log2(loss) fraction bits (10^5 clusters and a loss of 1: 2e-13).
    """
    return max(_sum_of_ratios(moves.up, scales), _sum_of_ratios(moves.down, scales))


def calibrate_column(moves: Moves, sizes: IntArray, epsilon: Epsilon) -> IntArray:
    """Return scales of the cluster sums whose *joint* loss is at most epsilon, with nearly the least expected error.

    With L_j = A_j/|C_j| and b_j = t_j/|C_j|, Lagrange's condition for the least sum |C_j| b_j^2 under sum L_j/b_j <= epsilon is
    |C_j| b_j^3 proportional to L_j. Hence (methods.md section 2)

        b_j = (L_j/|C_j|)^(1/3) * sum_i L_i^(2/3) |C_i|^(1/3) / epsilon,    then  b <- b * (loss / epsilon)

    where the last step uses up what max(ups, downs) leaves, the loss being homogeneous of degree -1. The real numbers aim at
    epsilon (1 - 2^-30), are rounded up, and the sum of the integer ratios is verified to stay at or under epsilon. No scale is
    above the rule's `worst` (`scales.Calibrated`), for all data: if that fits, nothing is refused here.
    """
    worst = moves.worst
    moving = worst > 0
    scales = np.zeros(len(worst), dtype=np.int64)
    if not moving.any():
        return scales
    size, reach = sizes[moving].astype(np.float64), worst[moving].astype(np.float64)
    share = reach / size
    eps = float(epsilon) * (1 - HEADROOM)
    wanted = np.cbrt(share / size) * float(np.sum(np.cbrt(share * share * size))) / eps * size
    ups, downs = moves.up[moving].astype(np.float64), moves.down[moving].astype(np.float64)
    wanted *= max(float(np.sum(ups / wanted)), float(np.sum(downs / wanted))) / eps
    growth = HEADROOM
    while True:
        if wanted.max() > MAX_SCALE:
            raise refuse_scale()
        scales[moving] = np.ceil(wanted)
        if column_loss(moves, scales) <= epsilon.fraction:
            return scales
        wanted *= 1 + growth
        growth *= 2  # the first steps correct the rounding; doubling ends the loop in any case


def _sum_of_ratios(changes: IntArray, scales: IntArray) -> Fraction | float:
    moving = changes > 0
    c, t = changes[moving], scales[moving]
    if not t.all():
        return np.inf
    if len(t) == 0:
        return Fraction(0)
    if int(t.min()) == int(t.max()):
        return Fraction(sum(int(part) for part in _int_sums(c)), int(t[0]))
    if len(t) <= _FEW:
        return sum((Fraction(int(a), int(b)) for a, b in zip(c, t, strict=True)), Fraction(0))
    return Fraction(int(ceil_ratios(c, t, bits := _fraction_bits(c, t)).sum()), 1 << bits)


def _int_sums(numbers: IntArray) -> npt.NDArray[np.int64]:
    """Return the sums of blocks so short that none overflows."""
    return np.add.reduceat(numbers, np.arange(0, len(numbers), 256))


def _fraction_bits(c: IntArray, t: IntArray) -> int:
    """Return the fraction bits for which the sum of all ratios stays within 62 bits."""
    return max(60 - int(np.sum(c / t)).bit_length(), 8)


def ceil_ratios(c: IntArray, t: IntArray, bits: int) -> IntArray:
    """Return ceil(c 2^bits / t) for each pair, which must fit 63 bits: by long division, as many bits at a time as fit next to
    t."""
    step = 63 - int(t.max(initial=1)).bit_length()
    out, rest = np.divmod(c, t)
    done = 0
    while done < bits:
        now = min(step, bits - done)
        digit, rest = np.divmod(rest << now, t)
        out = (out << now) + digit
        done += now
    return out + (rest > 0)
