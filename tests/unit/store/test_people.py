"""Rows that are put in order part by part: each once, whatever they begin with and however few lie in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.store import people
from release_pipeline.store.people import sort_people

Rows = npt.NDArray[np.uint8]


def as_texts(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows]


def sort_together(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """No more than so many."""
    monkeypatch.setattr(people, "_TOGETHER", rows)
    monkeypatch.setattr(people, "_OF_ROOT", 0)


@pytest.mark.parametrize("together", [7, 64, 300, 10_000])
def test_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, together: int) -> None:
    """With and without a file, of batches of any size, some of them empty, and with persons who have several records."""
    sort_together(monkeypatch, together)
    rng = np.random.default_rng(together)
    each = rng.integers(0, 256, (700, 16), dtype=np.uint8)
    each[1:40, :8] = each[0, :8]  # which one in 2^64 of two persons have
    rows = each[rng.integers(0, 700, 2000)]
    cuts = np.sort(rng.integers(0, 2000, 30))
    parts = list(sort_people(iter(np.split(rows, cuts)), 2000, tmp_path))
    assert (len(parts) > 1) == (together < 2000)
    counts = Counter(as_texts(rows))
    assert max(len(times) for _, times in parts) <= 2 * together + 39  # of what is as good as random
    assert as_texts(np.concatenate([part for part, _ in parts])) == sorted(counts)
    assert np.concatenate([times for _, times in parts]).tolist() == [counts[text] for text in sorted(counts)]
    assert list(tmp_path.iterdir()) == []


def test_a_person_with_very_many_records_takes_no_more_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of each run one row is left of them."""
    sort_together(monkeypatch, 100)
    reads: list[int] = []
    read_part = people._read_part

    def read(*asked: Any) -> Rows:
        reads.append(len(rows := read_part(*asked)))
        return rows

    monkeypatch.setattr(people, "_read_part", read)
    parts = list(sort_people((np.full((50, 16), 7, dtype=np.uint8) for _ in range(200)), 10_000, tmp_path))
    assert sum(reads) == 100
    assert [times.tolist() for _, times in parts if len(times)] == [[10_000]]


@pytest.mark.parametrize("together", [10, 179, 180, 181])
def test_all_are_read_before_the_first_part_comes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, together: int) -> None:
    """To the end: the connection that they are read from is the one that parts are written with."""
    sort_together(monkeypatch, together)
    ended: list[bool] = []

    def batches() -> Iterator[Rows]:
        for number in range(9):
            yield np.random.default_rng(number).integers(0, 256, (20, 16), dtype=np.uint8)
        ended.append(True)

    parts = sort_people(batches(), 180, tmp_path)
    first = next(parts)
    assert ended == [True]
    assert len(first[0]) + sum(len(part) for part, _ in parts) == 180
