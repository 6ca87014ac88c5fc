"""Arrays on disk: the same numbers as in memory, whatever the size of the pieces, and no file that anybody could find."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import OutOfSpace
from release_pipeline.privacy import arrays
from release_pipeline.privacy.arrays import IN_MEMORY, Arrays
from release_pipeline.privacy.clusters import rank_clusters, sort_records
from release_pipeline.privacy.groups import group_by
from release_pipeline.privacy.noise import noise_stream, shuffled_positions
from release_pipeline.store import scratch, shared
from release_pipeline.store.passes import SortedRuns
from release_pipeline.store.scratch import OnDisk
from release_pipeline.store.shared import OnCluster
from tests.workers import Inline

SECRET = bytes(range(32))
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where they lie. No file is left afterwards: those on disk have no names, and the others go with their arrays."""
    made = tmp_path_factory.mktemp("arrays")
    yield made
    gc.collect()
    assert [path for path in made.rglob("*") if not path.is_dir()] == []


@pytest.fixture(scope="module", autouse=True)
def few_at_once() -> Iterator[None]:
    """A piece that is worked on at once has so few entries that an array has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "PIECE", 7)
        patch.setattr(shared, "BY_VALUE", 40)
        yield


def elsewhere(folder: Path, piece: int) -> OnCluster:
    """Where others work on arrays, which are told of all but the shortest by where they lie."""
    return OnCluster(Path(mkdtemp(dir=folder)), piece, Inline())


KINDS = pytest.mark.parametrize("kind", [OnDisk, elsewhere], ids=["disk", "cluster"])
Kind = Callable[[Path, int], OnDisk]


@st.composite
def arrays_of(draw: st.DrawFn, least: int = 0) -> Array:
    """Whole numbers or floats, few different ones or many; NaN and both zeros among them."""
    n = draw(st.integers(least, 300))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        return rng.integers(0, draw(st.sampled_from([1, 3, 50, 2**52])), n)
    return rng.choice([0.0, -0.0, 1.5, -7.25, 1e300, np.nan, *rng.normal(size=draw(st.integers(0, 200)))], n)


sizes = st.integers(1, 60)


def cut(values: Array, part: slice) -> Array:
    """A piece of them, as a function that others may be told of."""
    return values[part]


def stored(arrays: Arrays, values: Array) -> Array:
    """They where arrays lie."""
    out = arrays.empty(len(values), values.dtype)
    out[:] = values
    return out


@KINDS
@given(values=arrays_of(), piece=sizes)
def test_sorting(kind: Kind, folder: Path, values: Array, piece: int) -> None:
    """Equal values by their places, in any number."""
    disk = kind(folder, piece)
    np.testing.assert_array_equal(disk.sort(stored(disk, values)), np.sort(values))
    assert disk.argsort(stored(disk, values)).tolist() == np.argsort(values, kind="stable").tolist()


@KINDS
@given(
    width=st.sampled_from([0, 1, 30, 2**31, 2**52]),
    n=st.integers(5, 300),
    k=st.integers(1, 5),
    piece=sizes,
    seed=st.integers(0, 2**32),
)
def test_ranks_clusters_and_shuffles(kind: Kind, folder: Path, width: int, n: int, k: int, piece: int, seed: int) -> None:
    """Ties and constants, and grids so wide that a value and its place do not fit in one word."""
    disk, rng = kind(folder, piece), np.random.default_rng(seed)
    values = rng.integers(0, width + 1, n)
    values[rng.random(n) < 0.3] = 0
    here = rank_clusters(values, k, ties=noise_stream(SECRET, "ties"))
    there = rank_clusters(stored(disk, values), k, ties=noise_stream(SECRET, "ties"), arrays=disk)
    for name in ("order", "ordered", "start", "size", "cluster"):
        assert getattr(here, name).tolist() == getattr(there, name).tolist(), name
    assert here.sums().tolist() == there.sums().tolist()
    shuffled = shuffled_positions(n, noise_stream(SECRET, "shuffle"), disk)
    assert shuffled.tolist() == shuffled_positions(n, noise_stream(SECRET, "shuffle")).tolist()
    others = rng.integers(0, 3, n)
    assert group_by([values, others], disk).tolist() == group_by([values, others]).tolist()
    both = [sort_records([others, values], noise_stream(SECRET), arrays)[0].tolist() for arrays in (IN_MEMORY, disk)]
    assert both[0] == both[1]


def test_a_full_disk_is_told_when_an_array_is_made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bytes are had then, so that nothing that is written later can end the process."""

    def full(file: int, offset: int, count: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(scratch.os, "posix_fallocate", full)
    with pytest.raises(OutOfSpace, match="the disk is full that a stage goes on on"):
        OnDisk(folder, 10).empty(11, np.float64)


@given(values=arrays_of(least=200), runs=st.integers(2, 6))
def test_no_more_than_a_piece_is_put_together_at_once(folder: Path, values: Array, runs: int) -> None:
    """However many are alike: of one value there may be any number, which need no sorting."""
    disk = OnDisk(folder, -(-len(values) // runs))
    cut = disk._runs(len(values))
    samples = disk.work(SortedRuns(values, values, cut), len(cut.starts))
    buckets, place = disk._find_buckets(values, cut, samples), 0
    assert len(buckets.groups) <= 2 * runs
    for group in buckets.groups:
        for bucket in range(group.start, group.stop):
            found = np.concatenate([np.empty(0), *(values[part] for part in buckets.parts(bucket))])
            assert buckets.places[bucket] == place
            assert len(found) <= disk.piece or bucket % 2
            assert not bucket % 2 or len(np.unique(found)) <= 1
            place += len(found)
    assert place == len(values)
