"""The share of records that somebody can link who knows some released columns of everybody, from the kept ones to all of them
(methods.md section 6)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from release_pipeline.audit.compared import Compared, Numbers
from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.samples import Share, measure_share
from release_pipeline.mechanisms.basis.utility import variance_of
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.mechanisms.noise import NoiseStream, shuffled_first
from release_pipeline.mechanisms.risk.risk import link_owners
from release_pipeline.rows.columns import number_cells

LINKAGE_SAMPLE = 2_000  # released records that are linked
MOST_PAIRS = 45  # pairs of masked columns that are tried: all pairs of ten columns
LEAST_NOISE = 1e-3  # noise of a column, in standard deviations: a column without noise does not outweigh all others by more

_compute: Any = pyarrow.compute  # its functions are made at run time
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rung:
    """The share of released records that somebody links to the right original who knows all kept columns and `masked` of the
    masked ones. `tried` of the `sets` with that many columns were tried: the set that links most (`columns`, `linked`), and the
    `median`. `control`: the success of guessing among originals with the same kept columns; for the kept columns themselves, of
    guessing among all."""

    masked: int
    columns: tuple[str, ...]
    linked: Share
    median: float
    control: float
    tried: int = 1
    sets: int = 1


def measure_ladder(compared: Compared, stream: NoiseStream, *, sample: int = LINKAGE_SAMPLE) -> tuple[Rung, ...]:
    """Return the rungs of the ladder, the lowest first: kept columns, these and one masked column, these and two, all released
    columns.

    Anyone who knows all columns can use those that help: the top is the most that any of these finds, or all columns by
    equal weight, or by weights that fall with the noise. So no column of pure noise makes the top lower.

    A rung exists where it differs from the one above it. Kept and generalised columns of a released row equal those of its
    original, so only originals with the same entries are compared; a blank cell may have been any entry. Within these the masked
    columns are compared as `record_linkage` does. If there are many pairs of columns, `list_pairs` selects those that are tried.

    If values are swapped, a row does not belong to one person. A link is then right to the extent that it reveals something: as
    often as the values of the other columns are those of the person it points to. At the top all columns but one are compared.
    """
    ladder = _Ladder.of(compared, stream, sample)
    names = list(ladder.known)
    rungs = [ladder.climb(0, [()], 1)] if ladder.has_kept or not names else []
    if len(names) > 1:
        rungs.append(ladder.climb(1, [(name,) for name in names], len(names)))
    if len(names) > 2:
        rungs.append(ladder.climb(2, list_pairs(names), math.comb(len(names), 2)))
    return (*rungs, *([ladder.reach(tuple(names), rungs)] if names else []))


def note_linkage(rungs: Sequence[Rung]) -> dict[str, Any]:
    """Return the ladder as evidence keeps it, with its top as the headline."""
    top = rungs[-1]
    return {
        "record_linkage": asdict(top.linked),
        "record_linkage_by_chance": top.control,
        "linkage_ladder": [asdict(rung) for rung in rungs],
    }


def list_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns to try: all, or if there are more than `MOST_PAIRS`, those next to each other in the policy's
    order (a circle), then those with one column between them, and so on: each column equally often.

    >>> list_pairs(["a", "b", "c"])
    [('a', 'b'), ('a', 'c'), ('b', 'c')]
    """
    count = len(names)
    if math.comb(count, 2) <= MOST_PAIRS:
        return list(combinations(names, 2))
    circle = ((names[i], names[(i + step) % count]) for step in range(1, count) for i in range(count))
    return list(islice(circle, MOST_PAIRS))


@dataclass(frozen=True, slots=True)
class _Ladder:
    """The released rows that are tried, out of `rows`, with their originals, and the data that they are compared with.

    `groups`: for each pattern of blank cells the group of each of the `originals`, by its entries in the columns without a blank,
    and the positions of the tried rows with that pattern. `known` and `points`: z-scores of each masked or swapped column, for
    all originals and for the tried rows; one column for each category. `guess`: how often a random original of a row's group is
    its own, on average over all rows.
    """

    rows: int
    originals: int
    original_of: IntArray
    groups: tuple[tuple[IntArray, IntArray], ...]
    known: dict[str, Numbers]
    points: dict[str, Numbers]
    guess: float
    has_kept: bool
    owners: dict[str, IntArray] | None

    @classmethod
    def of(cls, compared: Compared, stream: NoiseStream, sample: int) -> _Ladder:
        rows = len(compared.original_of)
        tried = shuffled_first(rows, sample, stream)
        known, points = dict[str, Numbers](), dict[str, Numbers]()
        for name in compared.policy.noise_columns:
            seen = np.asarray(compared.seen(name), dtype=np.float64)
            least, deviation = seen.min(), math.sqrt(variance_of(seen)) or 1.0
            known[name] = (seen - least) / deviation
            points[name] = (compared.released.column(name).to_numpy()[tried] - least) / deviation
        for name in compared.policy.swapped_columns:
            if name not in known:
                known[name], points[name] = _number_entries(compared, name, tried)
        position = np.full(rows, -1, dtype=np.int64)
        position[tried] = np.arange(len(tried))
        guess, groups = 0.0, list[tuple[IntArray, IntArray]]()
        codes, blank = _read_kept(compared)
        for is_blank, mine in _split_by_blanks(blank):
            there = codes[~is_blank]
            group = group_by(there) if len(there) else np.zeros(compared.originals, dtype=np.int64)
            guess += float(np.sum(1 / np.bincount(group)[group[compared.original_of[mine]]])) / rows
            of_tried = position[mine]
            groups.append((group, of_tried[of_tried >= 0]))
        original_of = np.asarray(compared.original_of[tried], dtype=np.int64)
        owners = None if compared.owners is None else {name: of[tried] for name, of in compared.owners.items()}
        return cls(rows, compared.originals, original_of, tuple(groups), known, points, guess, bool(len(codes)), owners)

    def climb(self, masked: int, tried: Sequence[tuple[str, ...]], sets: int) -> Rung:
        """Return the rung of these sets of masked columns, each with so many columns."""
        if not masked:
            return Rung(0, (), self._guess(), self.guess, 1 / self.originals)
        shares = [self._link(names) for names in tried]
        best = max(range(len(shares)), key=lambda at: shares[at].value)
        median = float(np.median([share.value for share in shares]))
        return Rung(masked, tried[best], shares[best], median, self.guess, len(tried), sets)

    def reach(self, names: tuple[str, ...], below: Sequence[Rung]) -> Rung:
        """Return the top: the most that is found by all columns (for swapped values by all but one), or by the columns of a rung
        below."""
        tried = [names]
        if self.owners is not None:
            tried = [tuple(other for other in names if other != name) for name in names]
        shares = [*(self._link(some) for some in tried), *(rung.linked for rung in below)]
        if len(names) > 1:
            weights = {name: 1 / self._measure_noise(name) for name in names}
            shares += [self._link(some, weights) for some in tried]
        linked = max(shares, key=lambda share: share.value)
        return Rung(len(names), names, linked, linked.value, self.guess)

    def _guess(self) -> Share:
        """Return the share that guessing links, over all rows: only entries are compared."""
        return Share(self.guess, self.guess, self.guess, self.rows, self.rows)

    def _measure_noise(self, name: str) -> float:
        """Return how far released values of a column are from their originals, in standard deviations; never 0."""
        originals = self.original_of if self.owners is None else self.owners[name]
        off = (self.points[name] - self.known[name][originals])[originals >= 0]
        return max(math.sqrt(float(np.sum(off * off) / len(off))) if len(off) else 0.0, LEAST_NOISE)

    def _link(self, names: tuple[str, ...], weights: Mapping[str, float] | None = None) -> Share:
        if not names:
            return self._guess()
        linked = np.zeros(len(self.original_of))
        weight = np.array([1.0 if weights is None else weights[name] for name in names])
        whose = [self.original_of] if self.owners is None else [of for name, of in self.owners.items() if name not in names]
        for group, mine in self.groups:
            known = np.column_stack([self.known[name] * own for name, own in zip(names, weight, strict=True)])
            points = np.column_stack([self.points[name][mine] * own for name, own in zip(names, weight, strict=True)])
            owners = [of[mine] for of in whose]
            found = link_owners(known, points, self.original_of[mine], owners, groups=group)
            linked[mine] = np.mean([np.where(of < 0, 0.0, share) for of, share in zip(owners, found, strict=True)], axis=0)
        return measure_share(linked, among=self.rows)


def _read_kept(compared: Compared) -> tuple[IntArray, Flags]:
    """Return the codes of all originals' entries and the blank cells of released rows, for each column that is released unmasked;
    and for generalised columns, all together, the class of each original."""
    swapped, rows = set(compared.policy.swapped_columns), len(compared.original_of)
    names = [name for name in compared.policy.kept_columns if name not in swapped]
    codes = [number_cells(compared.original(name))[1].astype(np.int64) for name in names]
    blank = [_find_blank(compared.released.column(name)) for name in names]
    if compared.classes is not None:
        codes.append(np.asarray(compared.classes, dtype=np.int64))
        blank.append(np.zeros(rows, dtype=np.bool_))
    if not codes:
        return np.zeros((0, compared.originals), dtype=np.int64), np.zeros((0, rows), dtype=np.bool_)
    return np.stack(codes), np.stack(blank)


def _number_entries(compared: Compared, name: str, tried: IntArray) -> tuple[Numbers, Numbers]:
    """Return a column of categories as one column of numbers for each category, with variance 1 together: for all originals, and
    for the released rows that are tried."""
    entries, codes = number_cells(compared.original(name))
    released = _compute.index_in(compared.released.column(name).take(pa.array(tried)), value_set=entries)
    share = np.bincount(codes, minlength=len(entries)) / len(codes)
    deviation = math.sqrt(float((share * (1 - share)).sum())) or 1.0
    each = np.arange(len(entries))
    known, points = (found[:, np.newaxis] == each for found in (codes, released.fill_null(-1).to_numpy()))
    return known / deviation, points / deviation


def _find_blank(column: pa.ChunkedArray) -> Flags:
    return np.concatenate([np.zeros(0, dtype=np.bool_), *(part.is_null().to_numpy(False) for part in column.chunks)])


def _split_by_blanks(blank: Flags) -> Iterator[tuple[Flags, IntArray]]:
    """Yield each pattern of blank cells that occurs, and the rows that have it."""
    if not len(blank):
        yield np.zeros(0, dtype=np.bool_), np.arange(blank.shape[1])
        return
    pattern = group_by(blank.astype(np.int64))
    for number in range(int(pattern.max()) + 1):
        mine = np.flatnonzero(pattern == number)
        yield blank[:, mine[0]], mine
