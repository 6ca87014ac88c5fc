"""Rank clusters against a plain implementation, for every shape of data."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import noise_stream, rank_clusters
from release_pipeline.mechanisms.basis.arrays import pieces
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.clusters import rank as module
from release_pipeline.mechanisms.clusters.rank import RankClusters, cut_ranks, rank_records, sort_records

VALUES = st.one_of(
    st.lists(st.integers(0, 5), min_size=1, max_size=200),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=200),
    st.lists(st.sampled_from([0, 1, 2**60, 2**60 + 1, 2**60 + 2, 2**62]), min_size=1, max_size=200),
)
SECRETS = st.one_of(st.none(), st.binary(min_size=32, max_size=32))


@given(VALUES, st.integers(1, 200))
def test_ranks_are_cut_as_defined(values: list[int], k: int) -> None:
    """Sorted order, p - 1 clusters of k and a last one of k..2k-1; of each the sum, the first values and the last."""
    tally = Tally.of(np.array(values))
    if len(values) < k:
        with pytest.raises(InvalidArgument):
            RankClusters.of(tally, k)
        return
    clusters, ordered = RankClusters.of(tally, k), sorted(values)
    assert clusters.size[:-1].tolist() == [k] * (clusters.count - 1)
    assert k <= clusters.size[-1] <= 2 * k - 1
    parts = [ordered[s : s + n] for s, n in zip(clusters.start.tolist(), clusters.size.tolist(), strict=True)]
    assert [value for part in parts for value in part] == ordered
    for place in range(min(k, 3)):
        assert clusters.first(place).tolist() == [part[place] for part in parts]
        assert clusters.last(place).tolist() == [part[-1 - place] for part in parts]
    try:
        assert clusters.sums().tolist() == list(map(sum, parts))
    except InvalidArgument:
        assert max(map(abs, values)) * int(clusters.size.max()) >= 2**63


@given(VALUES, st.integers(1, 20), SECRETS, st.integers(1, 9))
def test_a_record_is_in_the_cluster_of_its_rank(values: list[int], k: int, secret: bytes | None, at_once: int) -> None:
    """By value, and among equals by a keyed number of the position alone, however many are looked at together: of values that are
    few, and of values that are many. `[6,0,5,1]` included."""
    if len(values) < k:
        with pytest.raises(InvalidArgument):
            rank_clusters(values, k)
        return
    keyed = rank_clusters([0] * len(values), 1, ties=noise_stream(secret) if secret else None).tolist()
    assert sorted(keyed) == list(range(len(values)))
    rank = {i: r for r, i in enumerate(sorted(range(len(values)), key=lambda i: (values[i], keyed[i])))}
    expected = [min(rank[i] // k, len(values) // k - 1) for i in range(len(values))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "pieces", partial(pieces, size=at_once))
        assert rank_clusters(values, k, ties=noise_stream(secret) if secret else None).tolist() == expected


@pytest.mark.parametrize("most", [110, 70_000, 139_000, 10**6])
def test_no_order_of_all_is_needed(most: int) -> None:
    """Whether values are few or many, with heaps: the clusters are those of one sort by value and keyed position."""
    values = np.minimum(np.random.default_rng(most).integers(0, 2 * most, 70_000), most)
    column, found = rank_records(values, 25, noise_stream(bytes(32)))
    assert [part.tolist() for part in (column.entries, column.counts)] == [
        part.tolist() for part in np.unique(values, return_counts=True)
    ]
    expected = np.empty(len(values), dtype=np.int64)
    expected[sort_records([values], noise_stream(bytes(32)))] = np.repeat(np.arange(2800), cut_ranks(len(values), 25)[1])
    assert np.array_equal(found, expected)
    assert np.bincount(found).tolist() == [25] * 2800


def test_a_large_array_beyond_one_chunk_and_64_bits() -> None:
    """Values of 62 bits and positions of 18 bits do not fit one word: the repair gives the exact order."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**62, 200_000)
    values[::2] = values[0] + rng.integers(0, 4, 100_000)
    order = np.argsort(values, kind="stable")
    assert np.array_equal(sort_records([values], None), order)
    assert rank_clusters(values, 7)[order].tolist() == np.repeat(np.arange(28_571), cut_ranks(len(values), 7)[1]).tolist()
