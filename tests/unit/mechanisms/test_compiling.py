"""What numba compiled is kept where nobody else can write, and no file there can make anything fail, or run what is not ours."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from release_pipeline.mechanisms.basis.compiling import cache_folder, compiled


def twice(number: int) -> int:
    """To be compiled."""
    return 2 * number


def compile_anew() -> tuple[int, bool]:
    """What a new process would get of the function, and whether it was kept."""
    made: Any = compiled(twice)
    found = made(21)
    return found, sum(made.stats.cache_hits.values()) > 0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of our own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder()


class Marker:
    """As somebody would plant it: whoever reads it makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.file),)


def plant(folder: Path, marker: Path) -> None:
    """Put it in the place of every list of what is kept."""
    lists = list(folder.rglob("*.nbi"))
    assert lists
    for file in lists:
        file.write_bytes(pickle.dumps(numba.__version__) + pickle.dumps(Marker(marker)))


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04 what is this", b"\x80\x04N."])
def test_a_damaged_file_is_replaced(folder: Path, kind: str, content: bytes) -> None:
    """As after a full disk, or a machine that lost its power: compiled anew, and kept again."""
    assert compile_anew() == (42, False)
    for file in folder.rglob(kind):
        file.write_bytes(content)
    assert compile_anew() == (42, False)
    assert compile_anew() == (42, True)


def test_what_others_could_have_written_is_not_read(folder: Path, tmp_path: Path) -> None:
    """It would run as this account. (In a folder of ours it does: nobody else can put it there.)"""
    compile_anew()
    plant(folder, tmp_path / "not run")
    for mode in (0o770, 0o702, 0o777):
        folder.chmod(mode)
        assert compile_anew() == (42, False)
        assert not (tmp_path / "not run").exists()
    folder.chmod(0o700)
    compile_anew()
    assert (tmp_path / "not run").exists()
