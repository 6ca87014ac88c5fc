"""Rows that are put in order part by part: each once, whatever they begin with and however few lie in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import OutOfSpace
from release_pipeline.store import people
from release_pipeline.store.people import sort_people, sort_rows

Rows = npt.NDArray[np.uint8]
ROWS = st.lists(st.lists(st.sampled_from([0, 1, 127, 128, 255]), min_size=32, max_size=32).map(bytes), max_size=60)


def as_rows(texts: list[bytes]) -> Rows:
    return np.frombuffer(b"".join(texts), dtype=np.uint8).reshape(-1, 32)


def as_texts(rows: Rows) -> list[bytes]:
    return [row.tobytes() for row in rows]


def sort_together(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """No more than so many."""
    monkeypatch.setattr(people, "_TOGETHER", rows)
    monkeypatch.setattr(people, "_OF_ROOT", 0)


def alike(texts: list[bytes]) -> list[bytes]:
    """The same, which begin with one and the same eight bytes, or with one of two."""
    return [bytes([255 * (number % 3 == 2)]) * 8 + text[8:] for number, text in enumerate(texts)]


@given(texts=ROWS)
def test_rows_are_sorted_by_all_of_their_bytes(texts: list[bytes]) -> None:
    """Also of those that begin alike, with others between them, which no hash of two persons does."""
    for some in (texts, alike(texts), [*alike(texts), *alike(texts)[::-1]]):
        assert as_texts(sort_rows(as_rows(some))) == sorted(set(some))


@pytest.mark.parametrize("together", [7, 64, 300, 10_000])
def test_parts_are_the_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, together: int) -> None:
    """With and without a file, of batches of any size, some of them empty, and with persons who have several records."""
    sort_together(monkeypatch, together)
    rng = np.random.default_rng(together)
    each = rng.integers(0, 256, (700, 32), dtype=np.uint8)
    rows = each[rng.integers(0, 700, 2000)]
    cuts = np.sort(rng.integers(0, 2000, 30))
    parts = list(sort_people(iter(np.split(rows, cuts)), 2000, tmp_path))
    assert (len(parts) > 1) == (together < 2000)
    assert max(map(len, parts)) <= 2 * together  # of what is as good as random
    assert as_texts(np.concatenate(parts)) == sorted(set(as_texts(rows)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("together", [10, 179, 180, 181])
def test_all_are_read_before_the_first_part_comes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, together: int) -> None:
    """To the end: the connection that they are read from is the one that parts are written with."""
    sort_together(monkeypatch, together)
    ended: list[bool] = []

    def batches() -> Iterator[Rows]:
        for number in range(9):
            yield np.random.default_rng(number).integers(0, 256, (20, 32), dtype=np.uint8)
        ended.append(True)

    parts = sort_people(batches(), 180, tmp_path)
    first = next(parts)
    assert ended == [True]
    assert len(first) + sum(map(len, parts)) == 180


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    sort_together(monkeypatch, 10)
    rows = np.random.default_rng(1).integers(0, 256, (100_000, 32), dtype=np.uint8)
    monkeypatch.setattr(people, "TemporaryFile", lambda dir: Path("/dev/full").open("wb+"))  # noqa: SIM115
    with pytest.raises(OutOfSpace):
        list(sort_people([rows], len(rows), Path()))


def test_short_reads_are_continued(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The system may give less than was asked for."""
    sort_together(monkeypatch, 50)
    whole = os.preadv
    monkeypatch.setattr(people.os, "preadv", lambda file, into, at: whole(file, [into[0][:33]], at))
    rows = np.random.default_rng(2).integers(0, 256, (500, 32), dtype=np.uint8)
    assert as_texts(np.concatenate(list(sort_people([rows], 500, tmp_path)))) == sorted(as_texts(rows))
