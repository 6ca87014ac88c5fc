"""A list of sums: what `sha256sum -c` reads, over every file, and every difference shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.store.files import SUMS, is_whole, write_sums

NAMES = st.text("abcdefghij0123456789._-", min_size=1, max_size=12).filter(
    lambda name: name.strip(".") != "" and name[0] not in "-"
)
FILES = st.dictionaries(NAMES, st.binary(max_size=40), min_size=1, max_size=5)


def fill(folder: Path, files: dict[str, bytes]) -> str:
    """The files in a new folder, with their list; its hash."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return write_sums(folder)


@given(FILES, st.data())
def test_one_flipped_bit_shows(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], data: st.DataObject) -> None:
    """Of any file, or of the list itself."""
    folder = tmp_path_factory.mktemp("sums") / "folder"
    digest = fill(folder, files)
    name = data.draw(st.sampled_from([SUMS, *(name for name, content in files.items() if content)]))
    content = bytearray((folder / name).read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    (folder / name).write_bytes(content)
    assert not is_whole(folder, digest)
    assert not is_whole(folder, digest, besides=["other"], without=["another"])


def test_what_may_be_beside_and_what_may_be_missing(tmp_path: Path) -> None:
    """Only what is named: nothing else more, nothing else less; without a file its hash does not matter."""
    folder = tmp_path / "folder"
    digest = fill(folder, {"data.csv": b"1", "card.json": b"2"})
    (folder / "RETRACTED.json").write_text("{}")
    assert not is_whole(folder, digest)
    assert is_whole(folder, digest, besides=["RETRACTED.json", "RETRACTED.md"])
    (folder / "data.csv").unlink()
    assert not is_whole(folder, digest, besides=["RETRACTED.json"])
    assert is_whole(folder, digest, besides=["RETRACTED.json"], without=["data.csv", "data.parquet"])
    (folder / "card.json").unlink()
    assert not is_whole(folder, digest, besides=["RETRACTED.json"], without=["data.csv"])
