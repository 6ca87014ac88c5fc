"""A list of sums: what `sha256sum -c` reads, over every file, and every difference shows."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.flow.sums import SUMS, hash_of, hash_of_file, is_whole, write_sums

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


@given(FILES)
def test_the_list_names_every_file_with_its_hash(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    """In order of names; the hash of the folder is that of the list; sha256sum agrees."""
    folder = tmp_path_factory.mktemp("sums") / "folder"
    digest = fill(folder, files)
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}" for name in sorted(files)]
    assert (folder / SUMS).read_text().splitlines() == lines
    assert digest == hash_of(folder) == hashlib.sha256((folder / SUMS).read_bytes()).hexdigest()
    assert is_whole(folder, digest)


def test_sha256sum_reads_it(tmp_path: Path) -> None:
    """With names that have dots and capitals."""
    fill(tmp_path / "folder", {"data.csv": b"a,b\n", "RELEASE_NOTE.md": b"", "x.tar.gz": bytes(range(256))})
    subprocess.run(["sha256sum", "--strict", "-c", SUMS], cwd=tmp_path / "folder", check=True, capture_output=True)


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


def test_a_list_made_anew_is_another_folder(tmp_path: Path) -> None:
    """Whoever changes a file and the list with it has another hash; the old one, and none, are not its."""
    folder = tmp_path / "folder"
    digest = fill(folder, {"data.csv": b"1"})
    (folder / "data.csv").write_bytes(b"2")
    (folder / SUMS).unlink()
    assert write_sums(folder) != digest
    assert not is_whole(folder, digest)
    assert not is_whole(folder, None)
    assert not is_whole(tmp_path / "nothing", digest)
    assert not is_whole(tmp_path / "nothing", None)


def test_a_large_file_is_hashed_whole(tmp_path: Path) -> None:
    """Larger than what is read at once."""
    content = b"0123456789" * 300_000
    (tmp_path / "file").write_bytes(content)
    assert hash_of_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
