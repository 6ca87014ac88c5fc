"""The quantile function of fitted masses: what each rank is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from release_pipeline.privacy.arrays import pieces
from release_pipeline.privacy.by_value.fit import Masses
from release_pipeline.privacy.clusters import count_clusters, cut_ranks
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.tally import Tally

_AT_ONCE = 1 << 20  # ranks


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Grid units by share of the records: linear within cells, `shares` and `units` where the lines meet."""

    shares: FloatArray
    units: FloatArray

    @classmethod
    def of(cls, masses: Masses) -> Quantiles:
        """Each cell with mass has its numbers evenly, from the first to the last."""
        total = np.concatenate([[0.0], np.cumsum(masses.share)])
        held = masses.share > 0
        shares = np.stack([total[:-1][held], total[1:][held]], axis=1).ravel() / total[-1]
        units = np.stack([masses.edges[:-1][held], masses.edges[1:][held] - 1], axis=1).ravel()
        return cls(shares, units.astype(np.float64))

    def at(self, shares: FloatArray) -> FloatArray:
        """The units at these shares."""
        return np.interp(shares, self.shares, self.units)

    def of_ranks(self, records: int, begin: int, end: int) -> FloatArray:
        """Of ranks begin .. end - 1 of so many: rank i is at the share (i + 1/2) / n."""
        return self.at((np.arange(begin, end) + 0.5) / records)


class OfRanks(Protocol):
    """What gives ranks their units."""

    def of_ranks(self, records: int, begin: int, end: int) -> FloatArray:
        """Of ranks begin .. end - 1 of so many."""
        ...


def release_values(quantiles: OfRanks, records: int, k: int, atoms: tuple[int, ...]) -> Tally:
    """The tally of what ranks are given: each group of k their mean, moved to the grid. Of a group across the edge of an atom the
    majority decides: it is given the atom, or the mean of those that are not at one. Ranks are looked at piece by piece: there
    may be many in a group."""
    groups, found = count_clusters(records, k), list[Tally]()
    for part in pieces(groups, max(_AT_ONCE // k, 1)):
        begin, end = part.start * k, records if part.stop == groups else part.stop * k
        size = cut_ranks(end - begin, k)[1]
        units = _release_groups(quantiles, records, k, size, atoms, begin).astype(np.int64)
        found.append(Tally.of_ascending(units, begin + np.cumsum(size)))
    return Tally.of_ascending(np.concatenate([own.entries for own in found]), np.concatenate([own.ends for own in found]))


def _release_groups(quantiles: OfRanks, records: int, k: int, size: IntArray, atoms: tuple[int, ...], begin: int) -> FloatArray:
    """That of groups of these sizes, the first of which begins at a rank."""
    units = np.rint(quantiles.of_ranks(records, begin, begin + int(size.sum())))
    return units if k == 1 else _average(units, np.arange(len(size)) * k, size, atoms)


def _average(units: FloatArray, start: IntArray, size: IntArray, atoms: tuple[int, ...]) -> FloatArray:
    """The mean of each group, or the atom that most of it is at."""
    at_atom = np.isin(units, atoms)
    inside = np.add.reduceat(at_atom, start, dtype=np.int64)
    means = np.add.reduceat(np.where(at_atom, 0.0, units), start) / np.maximum(size - inside, 1)
    mostly = np.flatnonzero(2 * inside > size)
    means[mostly] = _middle_atoms(units, at_atom, start[mostly], size[mostly])
    return np.rint(means)


def _middle_atoms(units: FloatArray, at_atom: np.ndarray, start: IntArray, size: IntArray) -> FloatArray:
    """The atom of the rank in the middle of a group's ranks at atoms."""
    found = [units[begin : begin + count][at_atom[begin : begin + count]] for begin, count in zip(start, size, strict=True)]
    return np.array([one[len(one) // 2] for one in found])
