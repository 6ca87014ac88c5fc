"""The change of one record along an order of records: chains of clusters, their cost, and the noise scales that follow.

Records are in a total order that depends on each of them only, cut into clusters of consecutive records (`curve`). A replaced
record leaves cluster a and enters cluster b. If b is later, every cluster on the way loses its first record and gains the next
one's first:

    a           loses the record,    gains the first of a+1
    j between   loses its first,     gains the first of j+1
    b           loses its first,     gains the new record

and if b is earlier the same holds with last records. So all clusters from a to b change at once, each by one record out and one
in. The joint loss of a neighbour is the sum over clusters and columns of |change of the (trimmed) sum| / scale, and the
accountant takes the largest over all neighbours (methods.md section 4):

    known       what the clusters between change by, and for each record what its own cluster does when it leaves
    bounded     the new record: in each column the worse of the domain's ends, wherever in the order it would then belong

so it is an upper bound, and exact for one column with trimmed sums. All figures are integers in grid units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import Epsilon
from release_pipeline.mechanisms.accounting.sensitivity import HEADROOM, ceil_ratios, refuse_scale
from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.clusters.curve import cell_reach, curve_depth
from release_pipeline.mechanisms.clusters.rank import OrderClusters
from release_pipeline.mechanisms.noise import MAX_SCALE

_DEEPEST = 16  # level of the curve up to which the public bound looks for its least: beyond, the cells outnumber any clusters
_LIMIT_BITS = 60
_TOGETHER = 1 << 16  # entries of records and columns whose changes are in memory together


@dataclass(frozen=True, slots=True, repr=False)
class Extremes:
    """For each cluster and column: the sum, and the three smallest and the three largest values, the smallest and largest
    first."""

    total: IntArray
    low: tuple[IntArray, IntArray, IntArray]
    high: tuple[IntArray, IntArray, IntArray]

    @property
    def trimmed(self) -> IntArray:
        """Return the sums with the smallest value replaced by the second smallest and the largest by the second largest."""
        return self.total - self.low[0] + self.low[1] - self.high[0] + self.high[1]

    @property
    def moves(self) -> IntArray:
        """Return D of IDP24 Prop. 9 for each column: the most that one record in and one out change a trimmed sum; 0 if and only
        if all values of the cluster are equal."""
        (x1, x2, x3), (y1, y2, y3) = self.low, self.high
        return np.maximum((y1 - x2) + (x3 - x2) + (y1 - y2), (y2 - x1) + (y2 - y3) + (x2 - x1))

    def of(self, cluster: npt.NDArray[np.intp] | slice) -> Extremes:
        """Return the extremes of some clusters, or of the cluster of each record."""
        low, high = ((part[0][cluster], part[1][cluster], part[2][cluster]) for part in (self.low, self.high))
        return Extremes(self.total[cluster], low, high)

    def change(self, lost: IntArray, gained: IntArray) -> IntArray:
        """Return |change of the trimmed sum| when a cluster loses one of its values and gains another.

        Without the lost value its two smallest are r1 <= r2; with the gained one g they are min(r1, g) and the middle one of
        r1, r2, g. The same holds at the upper end.
        """
        (x1, x2, x3), (y1, y2, y3) = self.low, self.high
        r1, r2 = np.where(lost == x1, x2, x1), np.where((lost == x1) | (lost == x2), x3, x2)
        s1, s2 = np.where(lost == y1, y2, y1), np.where((lost == y1) | (lost == y2), y3, y2)
        lowest, highest = np.minimum(r1, gained), np.maximum(s1, gained)
        second, before_last = np.maximum(r1, np.minimum(r2, gained)), np.minimum(s1, np.maximum(s2, gained))
        return np.abs(self.total - lost + gained - lowest + second - highest + before_last - self.trimmed)


def find_extremes(ordered: IntArray, clusters: OrderClusters) -> Extremes:
    """Return the extremes of every cluster; `ordered`: records by columns, in the order of the clusters."""
    if int(clusters.size.min()) < 3:
        raise InvalidArgument("trimmed sums need clusters of at least three records.", remedy="Set k to 3 or more.")
    total = np.add.reduceat(ordered, clusters.start, axis=0)
    low, high = np.empty((3, *total.shape), dtype=np.int64), np.empty((3, *total.shape), dtype=np.int64)
    for column in range(ordered.shape[1]):  # each cluster sorted by this column: clusters first, so that they stay together
        values = ordered[np.lexsort((ordered[:, column], clusters.places)), column]
        for place in range(3):
            low[place, :, column] = values[clusters.start + place]
            high[place, :, column] = values[clusters.start + clusters.size - 1 - place]
    return Extremes(total, (low[0], low[1], low[2]), (high[0], high[1], high[2]))


@dataclass(frozen=True, slots=True, repr=False)
class Chains:
    """The changes of sums in chains of one direction.

    following  per cluster and column: what it gains when it loses a record that moves in this direction
    through    per cluster and column: a cluster between
    entering   per cluster and column: the cluster that the new record enters, at the worst
    """

    following: IntArray
    through: IntArray
    entering: IntArray


@dataclass(frozen=True, slots=True, repr=False)
class Neighbours:
    """All chains of a table: `later` and `earlier`. The change of a record's own cluster is computed in pieces on each request:
    arrays of all records and columns would need most of the memory."""

    ordered: IntArray
    clusters: OrderClusters
    widths: IntArray
    extremes: Extremes | None
    later: Chains
    earlier: Chains

    def own_clusters(self) -> Iterator[tuple[npt.NDArray[np.intp], list[IntArray]]]:
        """Yield, for some records at a time, the cluster of each, and per record and column the change of its own cluster when
        its replacement falls into the same cluster, into a later, and into an earlier one (0 in the last cluster of a chain)."""
        start, last = self.clusters.start, self.clusters.count - 1
        for part in pieces(len(self.ordered), max(_TOGETHER // self.ordered.shape[1], 1)):
            ranks: npt.NDArray[np.intp] = np.arange(int(part.start), int(part.stop), dtype=np.intp)
            cluster = np.searchsorted(start, ranks, side="right") - 1
            records = self.ordered[part]
            extremes = None if self.extremes is None else self.extremes.of(cluster)
            changes = [_worst(records, self.widths, extremes)]
            for chains, end in ((self.later, last), (self.earlier, 0)):
                leaving = _change(records, chains.following[cluster], extremes)
                leaving[cluster == end] = 0
                changes.append(leaving)
            yield cluster, changes


def _change(lost: IntArray, gained: IntArray, extremes: Extremes | None) -> IntArray:
    """Return the change of a plain sum, or with `extremes` of a trimmed one."""
    return np.abs(gained - lost) if extremes is None else extremes.change(lost, gained)


def _worst(lost: IntArray, widths: IntArray, extremes: Extremes | None) -> IntArray:
    """Return the largest change for any gained value: the ends of the domain are the worst ones."""
    ends = (np.zeros_like(lost), np.broadcast_to(widths, lost.shape))
    return np.maximum(*(_change(lost, end, extremes) for end in ends))


def find_neighbours(ordered: IntArray, clusters: OrderClusters, widths: IntArray, extremes: Extremes | None) -> Neighbours:
    """Return the largest change by every neighbour of this table: of plain sums, or with `extremes` of trimmed ones."""

    def chains(boundary: IntArray, following: IntArray) -> Chains:
        return Chains(following, _change(boundary, following, extremes), _worst(boundary, widths, extremes))

    first, final = ordered[clusters.start], ordered[clusters.start + clusters.size - 1]
    later = chains(first, np.concatenate([first[1:], first[-1:]]))
    return Neighbours(ordered, clusters, widths, extremes, later, earlier=chains(final, np.concatenate([final[:1], final[:-1]])))


def table_loss(neighbours: Neighbours, scales: IntArray) -> Fraction | float:
    """Return the most that one changed record costs with these scales (clusters by columns), over all neighbours: the accountant.

    0/0 counts as 0, and x/0 is infinite. Each ratio is rounded up to 2^-s, so that the figure is never below the bound.
    """
    if (scales == 0).any() and _is_bare(neighbours, scales == 0):
        return np.inf
    rough = _worst_chain(neighbours, np.maximum(scales, 1).astype(np.float64), _float_ratios)
    bits = max(_LIMIT_BITS - int(rough).bit_length(), 8)

    def ratios(part: IntArray, scale: npt.NDArray[Any]) -> IntArray:
        return ceil_ratios(part.reshape(-1), scale.reshape(-1), bits).reshape(part.shape)

    return Fraction(int(_worst_chain(neighbours, np.maximum(scales, 1), ratios)), 1 << bits)


def calibrate_table(
    neighbours: Neighbours, moves: IntArray, widths: IntArray, weights: Sequence[Fraction], epsilon: Epsilon
) -> IntArray:
    """Return scales of the trimmed sums whose joint loss over all clusters and columns is at most epsilon.

    As `calibrate_column`, over (cluster j, column a) at once: with D_ja of Prop. 9 as the bound on each change, u_a = W_a /
    weight_a as the unit of a column and L_ja = D_ja / (|C_j| u_a), the least sum |C_j| (b_ja / u_a)^2 under sum L_ja u_a / b_ja
    <= epsilon is at

        b_ja / u_a = (L_ja / |C_j|)^(1/3) * sum L^(2/3) |C|^(1/3) / epsilon,    then  b <- b * (loss / epsilon)

    where the loss is the accountant's, for chains; it is homogeneous of degree -1 in b. The real numbers aim at
    epsilon (1 - 2^-30), are rounded up, and the accountant verifies the integers.
    """
    scales = np.zeros(moves.shape, dtype=np.int64)
    moving = moves > 0
    if not moving.any():
        return scales
    unit = widths.astype(np.float64) / np.array([float(weight) for weight in weights])
    size = neighbours.clusters.size.astype(np.float64)[:, None]
    share = moves / size / unit
    eps = float(epsilon) * (1 - HEADROOM)
    wanted = np.cbrt(share / size) * float(np.sum(np.cbrt(share * share * size))) / eps * size * unit
    wanted *= float(_worst_chain(neighbours, np.where(moving, wanted, 1.0), _float_ratios)) / eps
    growth = HEADROOM
    while True:
        if wanted.max() > MAX_SCALE:
            raise refuse_scale()
        scales[moving] = np.ceil(wanted[moving])
        if table_loss(neighbours, scales) <= epsilon.fraction:
            return scales
        wanted *= 1 + growth
        growth *= 2  # the first steps correct the rounding; doubling ends the loop in any case


def order_reach(widths: Sequence[int], weights: Sequence[Fraction], clusters: int, *, order: str) -> Fraction:
    """Return how far one replaced record can move the sums of all clusters together, in widths of the domains, weighted by
    column:

        the most that sum_j sum_a weight_a |change of sum j in column a| / W_a can be, for any table in p clusters.

    Public: it needs the number of clusters only. W_a is the width of column a on its grid, m the number of columns, and a chain
    the records that move into the next cluster when one is replaced (module docstring). It has at most p steps, each at most W_a
    in column a: p sum_a weight_a, for every order. For `hilbert` there is a better bound. At level l the curve goes through
    2^(ml) cells, one face at a time, and a chain goes along it in one direction. Let x_a be the width of a cell (`cell_reach`). A
    step that crosses d_a cells in column a changes that column by at most (d_a + 1) x_a, and all crossings of all steps together
    are at most 2^(ml) - 1. Hence for every level

        reach <= (2^(ml) - 1) max_a (weight_a x_a / W_a)  +  p sum_a weight_a x_a / W_a

    and the least over the levels counts. With equal weights that is (2^(ml) - 1 + p m) / 2^l.

    >>> float(order_reach([100, 100], [Fraction(1), Fraction(1)], 50, order="hilbert"))
    20.375
    """
    least = clusters * sum(weights, Fraction(0))
    if order != "hilbert":
        return least
    for level in range(1, min(curve_depth(widths), _DEEPEST) + 1):
        cells = 1 << len(widths) * level
        if cells > 4 * clusters * len(widths) << level:  # crossings cost more than no curve at all, here and deeper
            break
        parts = [weight * cell_reach(width, level) / width for weight, width in zip(weights, widths, strict=True)]
        least = min(least, (cells - 1) * max(parts) + clusters * sum(parts, Fraction(0)))
    return least


def reach_scales(widths: Sequence[int], weights: Sequence[Fraction], reach: Fraction, epsilon: Epsilon) -> list[int]:
    """Return one scale per column, t_a = ceil(W_a reach / (weight_a epsilon)): all changes of a chain together then cost at most
    epsilon.

    sum_j sum_a |change| / t_a  <=  epsilon / reach * sum_j sum_a weight_a |change| / W_a  <=  epsilon.

    >>> reach_scales([100, 50], [Fraction(1), Fraction(1)], Fraction(20), Epsilon.of(2))
    [1000, 500]
    """
    wanted = [Fraction(width) * reach / (weight * epsilon.fraction) for width, weight in zip(widths, weights, strict=True)]
    scales = [-(-part.numerator // part.denominator) for part in wanted]
    if max(scales) > MAX_SCALE:
        raise refuse_scale()
    return scales


def _is_bare(neighbours: Neighbours, unmoved: npt.NDArray[np.bool_]) -> bool:
    """Return whether something changes that has no noise."""
    ways = (neighbours.later, neighbours.earlier)
    return any(part[unmoved].any() for chains in ways for part in (chains.through, chains.entering)) or any(
        part[unmoved[own]].any() for own, changes in neighbours.own_clusters() for part in changes
    )


def _float_ratios(changes: IntArray, scales: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return changes / scales


def _worst_chain(neighbours: Neighbours, scales: npt.NDArray[Any], ratios: Any) -> Any:
    """Return the largest sum of ratios along a chain: in real numbers, or in integers if `ratios` gives such."""
    ways, worst = (neighbours.later, neighbours.earlier), 0
    through = [ratios(chains.through, scales).sum(axis=1) for chains in ways]
    leaving = [np.zeros_like(costs) for costs in through]
    for own, (staying, *changes) in neighbours.own_clusters():
        of, begins = scales[own], np.flatnonzero(np.diff(own, prepend=-1))
        worst = max(worst, ratios(staying, of).sum(axis=1).max())
        part = slice(own[0], own[-1] + 1)  # the first and the last of them may have more records in other pieces
        for most, change in zip(leaving, changes, strict=True):
            most[part] = np.maximum(most[part], np.maximum.reduceat(ratios(change, of).sum(axis=1), begins))
    for chains, *found, step in zip(ways, leaving, through, (1, -1), strict=True):
        costs = (*found, ratios(chains.entering, scales).sum(axis=1))
        worst = max(worst, _longest(*(part[::step] for part in costs)))
    return worst


def _longest(leaving: npt.NDArray[Any], through: npt.NDArray[Any], entering: npt.NDArray[Any]) -> Any:
    """Return the largest leaving_a + through_{a+1} + .. + through_{b-1} + entering_b over a < b; 0 if there is one cluster."""
    before = np.cumsum(through) - through  # of all clusters before
    start = np.maximum.accumulate(leaving - before - through)
    return (start[:-1] + before[1:] + entering[1:]).max(initial=0)
