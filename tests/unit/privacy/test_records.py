"""The interface that records are behind: an implementation of a few plain lines gives the same statistics, to the last number."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest

from release_pipeline.privacy import Epsilon, Grid
from release_pipeline.privacy.arrays import IN_MEMORY
from release_pipeline.privacy.catalogue import METHODS, list_methods
from release_pipeline.privacy.methods import add_noise, compute_statistics
from release_pipeline.privacy.noise import NoiseStream
from release_pipeline.privacy.records import ARRAYS, ArrayRecords, RankedRecords

SECRET = bytes(range(32))
GRID = Grid.declare((0, 50), 1)
CLAIMS = [(name, scope) for name in list_methods("columns") for scope in METHODS[name].scopes]


@dataclass
class PlainClusters:
    """Lists of (value, record), one for each cluster."""

    members: list[list[tuple[int, int]]]
    records: int

    @property
    def size(self) -> np.ndarray:
        return np.array([len(own) for own in self.members])

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def cluster(self) -> np.ndarray:
        found = np.empty(self.records, dtype=np.intp)
        for number, own in enumerate(self.members):
            for _, record in own:
                found[record] = number
        return found

    def count_within(self, edges: np.ndarray) -> np.ndarray:
        values = [value for own in self.members for value, _ in own]
        return np.array([sum(a <= value < b for value in values) for a, b in pairwise(edges)])

    def sums(self) -> np.ndarray:
        return np.array([sum(value for value, _ in own) for own in self.members])

    def first(self, place: int) -> np.ndarray:
        return np.array([own[place][0] for own in self.members])

    def last(self, place: int) -> np.ndarray:
        return np.array([own[-1 - place][0] for own in self.members])


class Plain(ArrayRecords):
    """Sorted by Python; equal values in any order, for which no figure but the cluster of a record depends on it."""

    def rank(self, units: np.ndarray, k: int, *, ties: NoiseStream) -> RankedRecords:
        ordered = sorted((int(value), record) for record, value in enumerate(units))
        cuts = [*range(0, len(ordered) - k + 1, k)]
        ends = [*cuts[1:], len(ordered)]
        return PlainClusters([ordered[a:b] for a, b in zip(cuts, ends, strict=True)], len(ordered))


@pytest.mark.parametrize(("method", "scope"), CLAIMS)
def test_another_place_for_the_records_gives_the_same_statistics(method: str, scope: str) -> None:
    """Sums, sizes, scales, losses, and what is released of them."""
    values = np.random.default_rng(3).integers(0, 51, 103)
    k = 4 if METHODS[method].takes_k else None
    here, there = (
        compute_statistics(
            values,
            grid=GRID,
            method=method,
            epsilon=Epsilon.of("0.7"),
            k=k,
            scope=scope,
            consistency=None,
            secret=SECRET,
            context=(),
            records=records,
        )
        for records in (ARRAYS, Plain(IN_MEMORY))
    )
    for name in ("size", "statistic", "scale"):
        assert getattr(here, name).tolist() == getattr(there, name).tolist(), name
    assert here.loss == there.loss
    released = [add_noise(exact, secret=SECRET, context=()) for exact in (here, there)]
    assert released[0].tolist() == released[1].tolist()
    for part in (here, there):
        assert np.bincount(part.cluster).tolist() == part.size.tolist()
    assert sorted(zip(values, here.cluster, strict=True)) == sorted(zip(values, there.cluster, strict=True))
