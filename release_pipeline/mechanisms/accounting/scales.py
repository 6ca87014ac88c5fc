"""The kinds of sums of a method that works column by column, and the rule that gives each of them its noise scale.

A rule has everything known about the scales before and after the data are read: the scales themselves, the one public
bound on them, and how large the noise of a cluster can be. Each rule has its derivation. `Sums` says which sums are
published, and how far one changed record can move them (`sensitivity`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.accounting.sensitivity import (
    Moves,
    calibrate_column,
    calibrated_reach,
    plain_moves,
    prop8_sensitivity,
    refuse_scale,
    scales_for,
    trimmed_moves,
    trimmed_sums,
)
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.rank import RankClusters
from release_pipeline.mechanisms.noise import MAX_SCALE, gaussian_magnitude

ROUNDED = 1 + 1e-6  # covers the headroom of the calibration and what its last steps add


@dataclass(frozen=True, slots=True)
class Sums:
    """The sum that is published of each cluster, and how one changed record affects all of them.

    `reach(k)`: B, the most that the moves max(up_j, down_j) of all clusters can add up to, in widths W of the domain, for
    clusters of k records or more. `bias`: how far using this sum instead of the plain one can move a column's total, in widths.

    For trimmed sums T_j the bias is 1: T_j - S_j = (x_2 - x_1) - (x_n - x_{n-1}) in cluster j. The first gaps of all clusters are
    disjoint pieces of [0, W], so are the last ones: |sum_j (T_j - S_j)| <= W.
    """

    name: str
    least_k: int
    take: Callable[[RankClusters], IntArray]
    moves: Callable[[RankClusters, int], Moves]
    reach: Callable[[int], int]
    bias: int


def _plain_reach(k: int) -> int:
    """Return B = 2: the ups of plain sums add up to at most W, and so do the downs."""
    return 2


def _trimmed_reach(k: int) -> int:
    """Return B = 2, or 3 for clusters of three.

    In the gaps g_1 .. g_{c-1} between the sorted values of a cluster, up = (g_2 + .. + g_{c-1}) + g_2 + g_{c-1} and down = (g_1 +
    .. + g_{c-2}) + g_{c-2} + g_1: for c >= 4 both are at most twice the cluster's range, for c = 3 they are 3 g_2 and 3 g_1. The
    ranges of clusters of consecutive ranks add up to at most W.
    """
    return 3 if k == 3 else 2


def _trimmed_moves(clusters: RankClusters, width: int) -> Moves:
    return trimmed_moves(clusters)  # no end of the domain is part of it


PLAIN = Sums("plain", 1, RankClusters.sums, plain_moves, _plain_reach, bias=0)
TRIMMED = Sums("trimmed", 3, trimmed_sums, _trimmed_moves, _trimmed_reach, bias=1)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds on the scales t_j of all sums of a column, over all data. `scale`: none of them is larger, None if a single
    one may be as large as all together; `total` >= sum t_j; `root` >= sqrt(sum t_j^2)."""

    scale: int | None
    total: float
    root: float


@dataclass(frozen=True, slots=True)
class ScaleRule:
    """The rule for the noise scale of each cluster's sum, and what is known about it from declared facts only.

    `is_public`: every sum has the same scale, which anybody can compute (`public_scale`). `grows`: the bound grows with the
    number of clusters.
    """

    is_public: bool = False
    grows: bool = False

    def public_scale(self, width: int, epsilon: Epsilon) -> int | None:
        """Return the scale of every sum, if anybody can compute it; None if it depends on the data."""
        return None

    @abstractmethod
    def scales(self, clusters: RankClusters, moves: Moves, width: int, epsilon: Epsilon) -> IntArray:
        """Return the scale of each sum."""

    @abstractmethod
    def worst(self, sums: Sums, *, k: int, clusters: int, width: int, epsilon: Epsilon) -> int:
        """Return the one public bound: no scale is larger, over all data. It needs declared facts and the number of clusters,
        which follows from that of the records."""

    def least(self, width: int, epsilon: Epsilon) -> int:
        """Return a lower bound on all scales, over all data; 0 if a sum may have no noise, like that of a cluster of equal
        values."""
        return 0

    @abstractmethod
    def bound_all(self, sums: Sums, *, k: int, sizes: IntArray, width: int, epsilon: Epsilon) -> Bounds | None:
        """Return bounds on all scales of clusters of these sizes, of k records or more. None if the rounding of so many of them
        is not bounded."""

    @abstractmethod
    def mean_noise(self, sums: Sums, *, k: int, clusters: int | None, width: int, epsilon: Epsilon) -> float | None:
        """Return E|Z| on the sum of a cluster of k records, in grid units: exact if the scale is public, else the most over all
        data. None if that needs the number of clusters, which is not known."""


def mean_magnitude(scale: int) -> float:
    """Return E|Z| = 1 / sinh(1/t) of the discrete Laplace.

    >>> round(mean_magnitude(1), 4), round(mean_magnitude(1000), 1)
    (0.8509, 1000.0)
    """
    return 1 / math.sinh(1 / scale)


def domain_scale(width: int, epsilon: Epsilon) -> int:
    """Return t = ceil(W / eps): noise for a change as wide as the whole domain."""
    return int(scales_for(np.array([width]), epsilon)[0])


@dataclass(frozen=True, slots=True)
class OfDomain(ScaleRule):
    """t = ceil(W / eps) for every sum: all moves of one change add up to at most W (methods.md section 2). A rule with another
    public scale overrides `size`, and all other figures of the noise follow."""

    is_public: bool = True

    def size(self, width: int, epsilon: Epsilon) -> int:
        """Return the largest scale of a sum."""
        return math.ceil(width / epsilon.fraction)

    def public_scale(self, width: int, epsilon: Epsilon) -> int | None:
        """Return the scale of every sum."""
        scale = self.size(width, epsilon)
        if scale > MAX_SCALE:
            raise refuse_scale()
        return scale

    def scales(self, clusters: RankClusters, moves: Moves, width: int, epsilon: Epsilon) -> IntArray:
        """Return the same scale for each sum."""
        return np.full(clusters.count, self.public_scale(width, epsilon), dtype=np.int64)

    def worst(self, sums: Sums, *, k: int, clusters: int, width: int, epsilon: Epsilon) -> int:
        """Return the scale of every sum."""
        return self.size(width, epsilon)

    def least(self, width: int, epsilon: Epsilon) -> int:
        """Return the scale of every sum."""
        return self.size(width, epsilon)

    def bound_all(self, sums: Sums, *, k: int, sizes: IntArray, width: int, epsilon: Epsilon) -> Bounds:
        """Return bounds for p scales of at most that size."""
        t, p = self.size(width, epsilon), len(sizes)
        return Bounds(t, float(p) * t, math.sqrt(p) * t)

    def mean_noise(self, sums: Sums, *, k: int, clusters: int | None, width: int, epsilon: Epsilon) -> float:
        """Return E|Z| for the scale of every sum."""
        return mean_magnitude(self.size(width, epsilon))


@dataclass(frozen=True, slots=True)
class OfDomainByRho(OfDomain):
    """Variance W^2 / (2 rho) for every sum: the list of sums changes by at most W in L1 (methods.md section 2), and by no more in
    L2. Here the argument epsilon is rho, and the scale is the standard deviation, rounded up."""

    def variance(self, width: int, rho: Epsilon) -> Fraction:
        """Return the exact variance of the discrete Gaussian on each sum."""
        return Fraction(width * width) / (2 * rho.fraction)

    def size(self, width: int, epsilon: Epsilon) -> int:
        """Return sigma, rounded up."""
        square = self.variance(width, epsilon)
        return math.isqrt(-(-square.numerator // square.denominator) - 1) + 1

    def mean_noise(self, sums: Sums, *, k: int, clusters: int | None, width: int, epsilon: Epsilon) -> float:
        """Return E|Z| of that discrete Gaussian."""
        return gaussian_magnitude(self.variance(width, epsilon))


@dataclass(frozen=True, slots=True)
class LocalSensitivity(OfDomain):
    """IDP24 Prop. 8: t_j = ceil(max(W - x_1, x_n) / eps), which is at most ceil(W / eps), and at least half of it."""

    is_public: bool = False

    def public_scale(self, width: int, epsilon: Epsilon) -> None:
        """Return None: the values of a cluster decide."""

    def scales(self, clusters: RankClusters, moves: Moves, width: int, epsilon: Epsilon) -> IntArray:
        """Return the scales by the values of each cluster."""
        return scales_for(prop8_sensitivity(clusters, width), epsilon)

    def least(self, width: int, epsilon: Epsilon) -> int:
        """Return half of the domain's scale: W - x_1 and x_n add up to at least W."""
        return -(-self.size(width, epsilon) // 2)


@dataclass(frozen=True, slots=True)
class OfMoves(ScaleRule):
    """IDP24 Prop. 9: t_j = ceil(D_j / eps) with D_j = max(up_j, down_j). One cluster may have all of B W."""

    def scales(self, clusters: RankClusters, moves: Moves, width: int, epsilon: Epsilon) -> IntArray:
        """Return the scales by how far each sum can move."""
        return scales_for(moves.worst, epsilon)

    def worst(self, sums: Sums, *, k: int, clusters: int, width: int, epsilon: Epsilon) -> int:
        """Return ceil(B W / eps)."""
        return math.ceil(sums.reach(k) * width / epsilon.fraction)

    def bound_all(self, sums: Sums, *, k: int, sizes: IntArray, width: int, epsilon: Epsilon) -> Bounds:
        """Return bounds: t_j = ceil(D_j/eps) <= D_j/eps + 1 if D_j > 0, sum D_j <= B W, and sum D_j^2 <= (sum D_j)^2."""
        p, reach = len(sizes), float(sums.reach(k) * width / epsilon.fraction)
        return Bounds(None, reach + p, reach + math.sqrt(p))

    def mean_noise(self, sums: Sums, *, k: int, clusters: int | None, width: int, epsilon: Epsilon) -> float:
        """Return a bound on E|Z|, which is below t; ceil adds less than 1."""
        return sums.reach(k) * width / float(epsilon) + 1


@dataclass(frozen=True, slots=True)
class Calibrated(ScaleRule):
    """The least-error scales whose joint loss is at most epsilon (`calibrate_column`), bounded by `calibrated_reach`."""

    grows: bool = True

    def scales(self, clusters: RankClusters, moves: Moves, width: int, epsilon: Epsilon) -> IntArray:
        """Return the scales by all moves together."""
        return calibrate_column(moves, clusters.size, epsilon)

    def worst(self, sums: Sums, *, k: int, clusters: int, width: int, epsilon: Epsilon) -> int:
        """Return the bound for a last cluster of up to 2k - 1 records."""
        reach = calibrated_reach(sums.reach(k), clusters, stretch=(2 - 1 / k) ** (1 / 3))
        return math.ceil(Fraction(reach) * width / epsilon.fraction) + 1

    def bound_all(self, sums: Sums, *, k: int, sizes: IntArray, width: int, epsilon: Epsilon) -> Bounds | None:
        """Return bounds: `calibrate_column` takes w_j = (A_j c_j)^(1/3) sum_i A_i^(2/3) c_i^(-1/3) / eps for moves A_j with sum
        A_j <= B W, makes them smaller by the factor loss/eps <= 1 (the loss is at most sum A_j/w_j = eps), and rounds up. With
        Hoelder's inequality

            sum_i A_i^(2/3) c_i^(-1/3) <= (B W)^(2/3) (sum_i 1/c_i)^(1/3)
            sum_j (A_j c_j)^(2/3)      <= (B W)^(2/3) (sum_j c_j^2)^(1/3)
            sum_j (A_j c_j)^(1/3)      <= (B W)^(1/3) (sum_j c_j^(1/2))^(2/3)

        hence sum w_j <= (B W / eps) (sum 1/c)^(1/3) (sum c^(1/2))^(2/3) and sum w_j^2 <= (B W / eps)^2 (sum 1/c)^(2/3) (sum
        c^2)^(1/3); both are attained where all A_j and c_j are equal. Rounding up adds at most 1 to each scale (sqrt(p) to the
        root, by Minkowski's inequality), and `ROUNDED` covers the headroom, where there is a bound on it:

        the loss that is verified exceeds the true one, relatively, by less than d = 2 p 2^-60 / min(eps, 1). The calibration
        grows its scales by 2^-30, twice that, and so on, while the verified loss is above eps: before the last step they have
        grown by F < 1/(1 - d), and the last step multiplies them by at most F + 2^-30.
        """
        p, sizes_of = len(sizes), sizes.astype(np.float64)
        if 2 * p * 2.0**-60 / min(float(epsilon), 1) > 1e-7:
            return None
        reach = float(sums.reach(k) * width / epsilon.fraction) * ROUNDED * float(np.sum(1 / sizes_of)) ** (1 / 3)
        total = reach * float(np.sum(np.sqrt(sizes_of))) ** (2 / 3) + p
        root = reach * float(np.sum(sizes_of * sizes_of)) ** (1 / 6) + math.sqrt(p)
        return Bounds(None, total, root)

    def mean_noise(self, sums: Sums, *, k: int, clusters: int | None, width: int, epsilon: Epsilon) -> float | None:
        """Return the bound on E|Z| of a cluster of k records; None without the number of clusters."""
        return None if clusters is None else calibrated_reach(sums.reach(k), clusters) * width / float(epsilon) + 1


OF_DOMAIN, LOCAL_SENSITIVITY, OF_MOVES, CALIBRATED = OfDomain(), LocalSensitivity(), OfMoves(), Calibrated()
OF_DOMAIN_BY_RHO = OfDomainByRho()
