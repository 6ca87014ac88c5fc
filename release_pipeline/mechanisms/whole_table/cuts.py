"""How likely a cut is before any record is looked at, in whole numbers: half of it the same everywhere, half of it by how far a
place is from 0 (or from the lower end), each doubling of the distance alike. A domain that is declared a hundred times too wide
costs little then: what is near 0 keeps half of the mass.

A cut s of the numbers 0..width lies between s - 1 and s, for s = 1..width. With the distance d = 1, 2, ... of a cut from the
centre on its side, its mass is `even` + 2^BITS / 2^floor(log2 d), so that the 2^j places of each doubling have 2^BITS together.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from operator import mul
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.noise import NoiseStream
from release_pipeline.mechanisms.noise.sampling import below_exp, exp_digits, uniform_below

_BITS = 56  # more than a domain has, so that every share is a whole number


@dataclass(frozen=True)
class Places:
    """The cuts of a column of the numbers 0..`width`, `centre` being the one that shells are counted from."""

    width: int
    centre: int

    @cached_property
    def even(self) -> int:
        """The mass that every place has alike: so much that these have half of all."""
        return max((_shells(self.centre) + _shells(self.width - self.centre)) // max(self.width, 1), 1)

    def up_to(self, cut: int) -> int:
        """The mass of the cuts 1..cut.

        >>> places = Places(width=10, centre=4)
        >>> [places.up_to(cut) - places.up_to(cut - 1) - places.even for cut in (4, 5, 6, 8)] == [2**56, 2**56, 2**55, 2**54]
        True
        """
        below = _shells(self.centre) - _shells(self.centre - cut) if cut < self.centre else _shells(self.centre)
        above = _shells(cut - self.centre) if cut > self.centre else 0
        return self.even * cut + below + above

    def all_up_to(self, cuts: IntArray) -> npt.NDArray[np.uint64]:
        """`up_to` of each of these. No sum reaches 2^64: a side has at most 2^56 times the bits of the width, which are at most
        53, and what is even has no more than both sides."""
        below, above = (_all_shells(np.maximum(side, 0)) for side in (self.centre - cuts, cuts - self.centre))
        return np.uint64(self.even) * cuts.astype(np.uint64) + (np.uint64(_shells(self.centre)) - below) + above

    def find(self, low: int, high: int, mass: int) -> int:
        """The first of the cuts low + 1..high up to which there is more than so much mass, from `low` on."""
        start = self.up_to(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.up_to(middle) - start > mass:
                high = middle
            else:
                low = middle
        return high


def _shells(distance: int) -> int:
    """The mass of the distances 1..distance without what is even."""
    if distance < 1:
        return 0
    whole = distance.bit_length() - 1
    return (whole << _BITS) + (distance - (1 << whole) + 1) * (1 << (_BITS - whole))


def _all_shells(distances: IntArray) -> npt.NDArray[np.uint64]:
    """`_shells` of each distance, none of which is above `MAX_WIDTH`, so that a float has all its bits."""
    whole = np.maximum(np.frexp(distances.astype(np.float64))[1] - 1, 0).astype(np.uint64)
    left = distances.astype(np.uint64) + np.uint64(1) - (np.uint64(1) << whole)
    return (whole << np.uint64(_BITS)) + (left << (np.uint64(_BITS) - whole))


# Cut points of a column that follow its records, by the exponential mechanism (MT07), exactly
# (methods.md section 9, A).
#
# Public atoms are cells of their own; between them lie segments. A
# *level* cuts every node of a partition of the segments once. In the node of the numbers a..b-1,
# which holds N records, the cut s = a+1..b-1 that leaves L(s) of them below has a probability in
# proportion to
#
#     mass(s) exp(-(e/2) |2 L(s) - N|),        mass: a public measure.
#
#     **Theorem.** For tables of n records that differ in one of them, a level loses at most 2e of epsilon, and e^2/2 of rho.
#
#     Proof. The record has another number of the same node: N stays, L(s) changes by 1 at most, so |2 L - N| by 2, each weight
# by a
#     factor in [exp(-e), exp(e)], their sum likewise: the log of the ratio of two outcomes' probabilities lies in an interval
#     of length 2e that contains 0. It has left a node for another: in each of the two |2 L - N| changes by 1, since L and N lose
#     one together or N alone does; the log ratio lies in an interval of length e that contains 0; two draws are independent. So
#     2e in both cases. A mechanism whose log ratios lie in an interval of length h is (h^2/8)-zCDP (CKS20 Prop. 3.3; DR19):
#     (2e)^2/8 = e^2/2, or twice e^2/8. The nodes of a level are a function of the cuts before it, so that levels compose. The
# first
#     are a function of atoms that are declared: these are the same for both tables, and nothing is drawn for them.
#
# How it is drawn. Cuts are put into blocks, each with a whole number that is no less than 2^BITS
# times its largest exponential above that of the best cut. A block, a cut of it by mass, and a
# number t below the block's bound are drawn as one whole number; the cut is taken if t, with as
# many more random bits as it takes, lies below 2^BITS times its own exponential; else all is drawn
# again. No float decides anything, and no weight is cut off: where many records share one number
# even the best cut is far from the middle, and weights that end somewhere would have all cuts alike
# there.


OUTER_LEVELS = 2  # more cuts of the outermost nodes of each segment: tails are long
BITS = 64
_PER_BLOCK = 0.1  # of the exponent, that cuts of a block differ in: about a tenth is drawn again

Node = tuple[int, int]  # the numbers from the first up to, and without, the second


class Blocks(NamedTuple):
    """Cuts in ascending order: those behind one edge up to the next, their mass, and a bound on 2^BITS times their
    exponentials."""

    edges: list[int]
    masses: list[int]
    bounds: list[int]


@dataclass(frozen=True)
class CutLaw:
    """What is public about the cuts of a column: where they are likely, and e."""

    places: Places
    e: Fraction

    @cached_property
    def step(self) -> int:
        """How much |2 L - N| may differ within a block."""
        return max(math.floor(_PER_BLOCK * 2 / self.e), 1)

    def draw(self, values: Tally, node: Node, stream: NoiseStream) -> int:
        """A cut of the node, in which these values lie."""
        best = find_best(values, node)
        edges, masses, bounds = self.blocks(values, node, best)
        ends = list(accumulate(map(mul, masses, bounds)))
        while True:
            drawn = uniform_below(ends[-1], stream)
            block = bisect_right(ends, drawn)
            place, known = divmod(drawn - (ends[block - 1] if block else 0), bounds[block])
            cut = self.places.find(edges[block], edges[block + 1], place)
            exponent = self.e / 2 * (_distance(values, cut) - best)
            more = stream.further_words(stream.take_lanes(1), 0, 0)
            if below_exp(known, BITS, exponent.numerator, exponent.denominator, more):
                return cut

    def blocks(self, values: Tally, node: Node, best: int) -> Blocks:
        """All cuts of the node. `best`: the least |2 L - N| of one."""
        (a, b), count, step = node, len(values), self.step
        reach = best + math.ceil(2 * (BITS + 1) * math.log(2) / self.e)  # further out every bound is 1
        ends = _list_ends(values, range(max((count - reach) // 2, 0), min((count + reach + 1) // 2, count), max(step // 2, 1)))
        ends = np.append(ends[(ends > a) & (ends < b - 1)], b - 1)
        first = 2 * values.count_below(np.append(a, ends[:-1]) + 1) - count
        last = 2 * values.count_below(ends) - count
        nearest: IntArray = np.where((first <= 0) & (last >= 0), best, np.minimum(np.abs(first), np.abs(last)))
        edges = np.append(a, ends)
        steps: list[int] = (np.maximum(nearest - best, 0) // step).tolist()
        return Blocks(edges.tolist(), np.diff(self.places.all_up_to(edges)).tolist(), list(map(self.bound, steps)))

    def bound(self, steps: int) -> int:
        """A whole number that is no less than 2^BITS exp(-(e/2) x), for x from so many steps on."""
        if steps not in self._bounds:
            exponent = self.e / 2 * steps * self.step
            self._bounds[steps] = exp_digits(exponent.numerator, exponent.denominator, BITS) + 1 if steps else 1 << BITS
        return self._bounds[steps]

    @cached_property
    def _bounds(self) -> dict[int, int]:
        """Those that are known."""
        return {}


def _list_ends(values: Tally, ranks: range) -> IntArray:
    """The different values at these ranks and right behind them: those with a rank from the one before
    their first to their last."""
    if not ranks:
        return np.empty(0, dtype=np.int64)
    before_first = values.ends - values.counts - 1
    steps = -(-np.maximum(before_first - ranks.start, 0) // ranks.step)
    nearest = ranks.start + steps * ranks.step
    return values.entries[nearest <= np.minimum(values.ends - 1, ranks[-1])]


def find_best(values: Tally, node: Node) -> int:
    """The least |2 L - N| of a cut of the node."""
    count = len(values)
    if not count:
        return 0
    middle = int(values.at(np.array([count // 2]))[0])
    cuts = [cut for cut in (middle, middle + 1) if node[0] < cut < node[1]]
    return min(_distance(values, cut) for cut in cuts)


def _distance(values: Tally, cut: int) -> int:
    return abs(2 * int(values.count_below(cut)) - len(values))


def segments_between(width: int, atoms: Sequence[int]) -> tuple[list[int], list[Node]]:
    """The edges that atoms make of 0..width, each being a cell of its own; and the segments between them that can be cut.

    >>> segments_between(9, [0, 9])
    ([0, 1, 9, 10], [(1, 9)])
    """
    edges = sorted({0, width + 1}.union(*({atom, atom + 1} for atom in atoms)))
    return edges, [(a, b) for a, b in pairwise(edges) if b - a > 1]


def measure_cuts(values: Tally, law: CutLaw, atoms: Sequence[int], depth: int, stream: NoiseStream) -> IntArray:
    """The edges of the cells of a column of these values: `depth` levels of cuts of all nodes, then `OUTER_LEVELS`
    of those at the ends of each segment."""
    edges, segments = segments_between(law.places.width, atoms)
    cuts = set(edges)
    live = segments
    for _ in range(depth):
        live = _cut_level(values, law, live, cuts, stream)
    for _ in range(OUTER_LEVELS):
        _cut_level(values, law, _outer_nodes(segments, cuts), cuts, stream)
    return np.array(sorted(cuts), dtype=np.int64)


def _cut_level(values: Tally, law: CutLaw, nodes: Sequence[Node], cuts: set[int], stream: NoiseStream) -> list[Node]:
    """Cut every node that can be cut, once; the nodes that come of it."""
    halves: list[Node] = []
    for a, b in nodes:
        cut = law.draw(values.between(a, b), (a, b), stream)
        cuts.add(cut)
        halves.extend(half for half in ((a, cut), (cut, b)) if half[1] - half[0] > 1)
    return halves


def _outer_nodes(segments: Sequence[Node], found: set[int]) -> list[Node]:
    """The first and the last node of each segment, as far as they can be cut: no two overlap."""
    nodes: set[Node] = set()
    edges = sorted(found)
    for a, b in segments:
        inside = edges[edges.index(a) : edges.index(b) + 1]
        nodes |= {(inside[0], inside[1]), (inside[-2], inside[-1])}
    return sorted(node for node in nodes if node[1] - node[0] > 1)
