"""MDAV (DT05): clusters of k to 2k-1 similar records over several attributes at once, for multivariate microaggregation.

Attributes count equally: each is replaced by its z-scores, z = (x - mean) / deviation, the deviation being that of all n records;
a constant attribute counts 0. While 3k records or more are left, r is the record farthest from the centroid of those left, and
its cluster is r and the k-1 records nearest to r; s is the record farthest from r among those left after that, and its cluster is
s and the k-1 nearest to s. With 2k to 3k-1 records left, the cluster of r is made, and the rest is one cluster; fewer are one
cluster.

Every comparison is fixed to the last bit, so ties are the same on every machine. A squared distance is summed attribute by
attribute, in order, in float64. The centroid is the exact sum of the z-scores left, rounded once, over their number, rounded once
(`math.fsum(z) / len(z)`): it depends neither on the order of the records nor on which were removed when, so that it can be kept
up to date instead of being summed again. With equal distances the record with the lowest index is taken. Only the z-scores
themselves are computed by NumPy (`x.mean(axis=0)` and `x.std(axis=0)`, row by row).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray, as_matrix
from release_pipeline.mechanisms.clusters.rank import as_threshold
from release_pipeline.mechanisms.noise import NoiseStream, shuffled_positions

_CELL = 5_000  # approximate records in a block: so few that their pairs cost little, so many that few clusters are at an edge
_CELL_CLUSTERS = 10  # a block has room for at least so many clusters of k
_LEAST = 2.0**-500  # the squares of smaller deviations lose bits
_STEPS = 20  # how often progress is reported

Progress: TypeAlias = Callable[[str], None]


def mdav(matrix: npt.ArrayLike, k: int, *, blocks: str | None = None, progress: Progress = lambda _: None) -> IntArray:
    """Return the cluster of each row, numbered from 0 in the order in which they were made: k to 2k-1 rows each.

    `matrix` has a row for each record and a column for each attribute: integers or finite floats. With k = 1 every row is a
    separate cluster. `progress` gets the number of clustered rows from time to time. The time grows with n^2 / k.

    `blocks="kd"` is for millions of rows. The table is first cut at medians, always across the column that is widest in its
    z-scores, into cells of about 5,000 rows (or 10k, if that is more), and each cell is clustered separately: the time is
    proportional to n, and clusters are a little less homogeneous. The cuts are at the medians of the data, so one changed record
    can change many cells: this is for k-anonymity only, and no basis for a claim of differential privacy.

    >>> mdav([[1, 5], [2, 5], [8, 6], [9, 6]], 2).tolist()
    [0, 0, 1, 1]
    """
    k = as_threshold(k, "k")
    if blocks not in (None, "kd"):
        raise InvalidArgument("blocks names no way to cut the table.", remedy='Leave it out, or write blocks="kd".')
    array = as_matrix(matrix)
    n = len(array)
    if n < k:
        raise InvalidArgument(f"{n:,} records cannot fill one cluster of {k:,}.", remedy="Lower k or publish more records.")
    z = _standardise(array)
    label = np.arange(n, dtype=np.int64)
    if k == 1:
        return label
    counter = _Progress(n, progress)
    made = 0
    for rows in _cells(z, max(_CELL, _CELL_CLUSTERS * k)) if blocks else [label.copy()]:
        found = _cluster(z if len(rows) == n else z[rows], k, counter)
        label[rows] = found + made
        made += int(found.max()) + 1
    return label


class _Progress:
    """Counts the records in clusters, and reports the number each time a further share of all is reached."""

    def __init__(self, n: int, progress: Progress) -> None:
        self.n, self.done, self.reported, self.step, self.progress = n, 0, 0, max(n // _STEPS, 1), progress

    def add(self, records: int) -> None:
        self.done += records
        if self.done - self.reported >= self.step:
            self.reported = self.done
            self.progress(f"{self.done:,} of {self.n:,} records are in clusters")


def _standardise(array: npt.NDArray[np.generic]) -> FloatArray:
    """Return the z-scores, column by column; 0 in a constant column."""
    x = np.ascontiguousarray(array, dtype=np.float64)
    with np.errstate(all="ignore"):
        mean, deviation = x.mean(axis=0), x.std(axis=0)
        constant = x.min(axis=0) == x.max(axis=0)
        z = (x - mean) / np.where(constant, 1.0, deviation)
    z[:, constant] = 0.0
    lost = ~constant & ~((deviation > _LEAST) & (deviation < np.inf))
    if lost.any():
        raise InvalidArgument(
            "the numbers are too large or too near to each other to be standardised.",
            where=f"column {int(lost.argmax())}",
            remedy="Give the column in another unit.",
        )
    return z


def _cells(z: FloatArray, about: int) -> Iterator[IntArray]:
    """Yield the rows, in ascending order, of cells of 3/4 to 3/2 of `about` rows, or of all rows if there are not more."""
    pending = [np.arange(len(z), dtype=np.int64)]
    while pending:
        rows = pending.pop()
        if 2 * len(rows) <= 3 * about:
            yield rows
            continue
        part = z[rows]
        column = part[:, int(np.argmax(np.ptp(part, axis=0)))]
        half = len(rows) // 2
        median = np.partition(column, half)[half]
        lower = column < median
        # equal values go to the lower side in order of the rows until it is half of the cell
        lower[np.flatnonzero(column == median)[: half - np.count_nonzero(lower)]] = True
        pending += [rows[~lower], rows[lower]]


def _cluster(z: FloatArray, k: int, counter: _Progress) -> IntArray:
    """Return the cluster of each row of one cell."""
    label = np.full(len(z), -1, dtype=np.int64)
    rows, left = np.arange(len(z)), np.ascontiguousarray(z.T)  # a row of `left` for each attribute
    sums = [_exact_sum(attribute) for attribute in left.tolist()]
    made = 0

    def take(members: npt.NDArray[np.intp]) -> None:
        nonlocal rows, left, sums, made
        label[rows[members]] = made
        made += 1
        sums = [_exact_sum([*parts, *gone]) for parts, gone in zip(sums, (-left[:, members]).tolist(), strict=True)]
        rows, left = np.delete(rows, members), np.delete(left, members, axis=1)
        counter.add(len(members))

    while len(rows) >= 2 * k:
        both = len(rows) >= 3 * k
        r = int(_squares(left, [math.fsum(parts) / len(rows) for parts in sums]).argmax())
        corner = left[:, r]
        take(_nearest(left, r, k))
        if both:
            take(_nearest(left, int(_squares(left, corner).argmax()), k))
    if len(rows):
        take(np.arange(len(rows)))
    return label


def _exact_sum(numbers: list[float]) -> list[float]:
    """Return a few numbers with exactly the same sum, the first one the sum rounded once."""
    numbers, parts = numbers.copy(), list[float]()
    while part := math.fsum(numbers):
        parts.append(part)
        numbers.append(-part)
    return parts


def _squares(left: FloatArray, point: Sequence[float] | FloatArray) -> FloatArray:
    """Return the squared distance of each record (a column of `left`) from a point."""
    total = np.zeros(left.shape[1])
    for attribute, coordinate in zip(left, point, strict=True):
        difference = attribute - coordinate
        difference *= difference
        total += difference
    return total


def _nearest(left: FloatArray, centre: int, k: int) -> npt.NDArray[np.intp]:
    """Return the record `centre` and the k-1 nearest to it."""
    distance = _squares(left, left[:, centre])
    distance[centre] = -1.0  # itself, before all equal ones
    limit = np.partition(distance, k - 1)[k - 1]
    inside = np.flatnonzero(distance < limit)
    return np.concatenate([inside, np.flatnonzero(distance == limit)[: k - len(inside)]])


# Swapping: within blocks of similar records each column's values are assigned to the block's rows at random (methods.md section
# 10).
#
# Suppose somebody names a record for each row by anything except its value of one column, and takes this value for the record's.
# If every block has k records or more, all with the same kept entries, they are right in at most 1/k of the rows on average:
# whatever they know, and however the blocks depend on the data. For that the permutations of the columns must be uniform, and
# independent of each other and of everything else.


NO_BLOCK = -1  # for a record that is not released
# Records of a cell above which it is cut at medians first. MDAV took 2 CPU seconds of 300,000 records with four columns, 10 of a
# million, and 171 with ten columns; cuts took 7, and moved values by .23 of their variance where MDAV moved them by .09.
LARGE = 250_000

Positions = npt.NDArray[np.intp]


def describe_alike(columns: Sequence[FloatArray]) -> FloatArray:
    """Return the features that make records similar, a row for each record: for every column its numbers and its mid-ranks, which
    MDAV scales to unit variance. Only numbers leave rank correlations off by .021 on RAND HIE, only ranks move values by .52 of
    the variance; both together .008 and .33. A missing number counts as the middle one, and that it is missing is a feature."""
    features = list[FloatArray]()
    for column in columns:
        missing = np.isnan(column)
        known = column[~missing]
        filled = np.where(missing, np.median(known) if len(known) else 0.0, column)
        features += [filled, _rank_middle(filled)]
        if missing.any():
            features.append(missing.astype(np.float64))
    return np.column_stack(features)


def make_blocks(features: FloatArray, cell: IntArray, k: int, *, earlier: IntArray | None = None) -> IntArray:
    """Return the block of each record, from 0: k records or more of one cell, by MDAV; `NO_BLOCK` if the cell is below 0.

    `earlier`: the block of a record in an earlier release about the same people, or below 0. Records of an earlier block that are
    in one cell again stay together: if they are fewer than k now, all of them join others that are near. New records are in new
    blocks, or with near others if fewer than k are new in a cell.
    """
    block = np.full(len(cell), NO_BLOCK, dtype=np.int64)
    made = 0
    for rows in _rows_of_each(cell):
        if len(rows) < k:
            raise InvalidArgument(f"a cell has fewer records than the {k:,} of a block.", where="swap")
        part = np.full(len(rows), NO_BLOCK, dtype=np.int64) if earlier is None else earlier[rows]
        part = np.unique(part, return_inverse=True)[1] + (0 if (part < 0).any() else 1)  # 0 for new records
        new = np.flatnonzero(part == 0)
        if len(new) >= k:
            part[new] = part.max() + 1 + _cluster_block(features[rows[new]], k)
        part = _merge_small(features[rows], part, k)
        block[rows] = part + made
        made += int(part.max()) + 1
    return block


def swap_positions(block: IntArray, stream: NoiseStream) -> Positions:
    """Return the record from which each one gets its value: a uniform permutation within every block, each independent of the
    others. A record in no block keeps its own."""
    drawn = shuffled_positions(len(block), stream)  # a uniform order of all records gives a uniform order of each block, too
    source = np.empty(len(block), dtype=np.intp)
    source[np.argsort(block, kind="stable")] = drawn[np.argsort(block[drawn], kind="stable")]
    out = block < 0
    source[out] = np.flatnonzero(out)
    return source


def _cluster_block(features: FloatArray, k: int) -> IntArray:
    return mdav(features, k, blocks="kd" if len(features) > LARGE else None)


def _rank_middle(numbers: FloatArray) -> FloatArray:
    """Return the rank of each number; equal ones get their middle rank."""
    _, place, count = np.unique(numbers, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]


def _rows_of_each(cell: IntArray) -> Iterator[Positions]:
    """Yield the records of every cell, ascending."""
    order = np.argsort(cell, kind="stable")
    starts = np.flatnonzero(np.diff(cell[order], prepend=NO_BLOCK))  # records of no cell come before all others
    yield from np.split(order, starts)[1:]


def _merge_small(features: FloatArray, part: IntArray, k: int) -> IntArray:
    """Return the parts of a cell from 0, with whole parts of fewer than k records merged with others whose centres are near."""
    while True:
        part = np.unique(part, return_inverse=True)[1]
        count = np.bincount(part)
        small = np.flatnonzero(count < k)
        if not len(small):
            return part
        centres = np.column_stack([np.bincount(part, weights=column) / count for column in features.T])
        into = np.arange(len(count))
        if len(small) > 1:
            label = mdav(centres[small], 2)
            into[small] = small[np.unique(label, return_index=True)[1]][label]
        else:
            spread = centres.std(axis=0)
            apart = np.square((centres - centres[small]) / np.where(spread > 0, spread, 1.0)).sum(axis=1)
            apart[small] = np.inf
            into[small] = apart.argmin()
        part = into[part]
