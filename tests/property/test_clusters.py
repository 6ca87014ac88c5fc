"""Rank clusters against a plain implementation, for every shape of data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy import noise_stream, rank_clusters

VALUES = st.one_of(
    st.lists(st.integers(0, 5), min_size=1, max_size=200),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=200),
    st.lists(st.sampled_from([0, 1, 2**60, 2**60 + 1, 2**60 + 2, 2**62]), min_size=1, max_size=200),
)


@given(VALUES, st.integers(1, 20), st.one_of(st.none(), st.binary(min_size=32, max_size=32)))
def test_ranks_are_cut_as_defined(values: list[int], k: int, secret: bytes | None) -> None:
    """Sorted order, p - 1 clusters of k and a last one of k..2k-1, every record once, `[6,0,5,1]` included."""
    if len(values) < k:
        with pytest.raises(InvalidArgument):
            rank_clusters(values, k)
        return
    clusters = rank_clusters(values, k, ties=noise_stream(secret) if secret else None)
    assert sorted(clusters.order.tolist()) == list(range(len(values)))
    assert clusters.ordered.tolist() == sorted(values) == [values[i] for i in clusters.order]
    assert clusters.size[:-1].tolist() == [k] * (clusters.count - 1)
    assert k <= clusters.size[-1] <= 2 * k - 1
    sums = [sum(sorted(values)[s : s + n]) for s, n in zip(clusters.start, clusters.size.tolist(), strict=True)]
    try:
        assert clusters.sums().tolist() == sums
    except InvalidArgument:
        assert max(map(abs, values)) * int(clusters.size.max()) >= 2**63
    assert clusters.cluster[clusters.order].tolist() == np.repeat(np.arange(clusters.count), clusters.size).tolist()


@given(VALUES, st.binary(min_size=32, max_size=32))
def test_keyed_ties_depend_on_positions_alone(values: list[int], secret: bytes) -> None:
    """Adding a constant to all values, or making them all equal, leaves the order among equals as the key says."""
    order = rank_clusters(values, 1, ties=noise_stream(secret)).order
    key_rank = np.empty(len(values), dtype=np.int64)
    key_rank[rank_clusters([0] * len(values), 1, ties=noise_stream(secret)).order] = np.arange(len(values))
    expected = sorted(range(len(values)), key=lambda i: (values[i], key_rank[i]))
    assert order.tolist() == expected


def test_a_large_array_beyond_one_chunk_and_64_bits() -> None:
    """Values of 62 bits and positions of 18 bits do not fit one word: the repair gives the exact order."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**62, 200_000)
    values[::2] = values[0] + rng.integers(0, 4, 100_000)
    clusters = rank_clusters(values, 7)
    assert np.array_equal(clusters.order, np.argsort(values, kind="stable"))
    assert np.array_equal(clusters.ordered, np.sort(values))
