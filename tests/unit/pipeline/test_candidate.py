"""A candidate's folder: whole or not at all, the same bytes for the same content, and every later change found."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from release_pipeline.pipeline import candidate
from release_pipeline.pipeline.candidate import freeze
from release_pipeline.store.files import hash_of, is_whole

TABLE = pa.table({"town": ["north", 'sö,"u\nth'], "income": [1.5, 2.0], "sex": pa.array([None, 1], pa.int64())})
EVIDENCE: dict[str, Any] = {"facts": {"epsilon": 2.0}, "columns": {}}


def test_frozen_folder_has_the_formats_and_hashes_of_everything(tmp_path: Path) -> None:
    """Only the formats asked for; the hash is that of the list of sums; private, folders included."""
    folder = tmp_path / "candidates" / "people" / "1" / "r1"
    digest = freeze(folder, TABLE, ("csv",), EVIDENCE)
    assert sorted(file.name for file in folder.iterdir()) == ["SHA256SUMS", "data.csv", "evidence.json"]
    assert digest == hash_of(folder) == hashlib.sha256((folder / "SHA256SUMS").read_bytes()).hexdigest()
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert {stat.S_IMODE(one.stat().st_mode) for one in (folder, *list(folder.parents)[:3])} == {0o700}
    assert is_whole(folder, digest)


def test_failed_freeze_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole or not at all: the earlier candidate is untouched, and no partial folder stays."""
    folder = tmp_path / "r1"
    digest = freeze(folder, TABLE, ("csv",), EVIDENCE)

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    for target in ("write_data", "sync", "write_sums"):
        with monkeypatch.context() as patch:
            patch.setattr(candidate, target, fail)
            with pytest.raises(OSError, match="disk full"):
                freeze(folder, TABLE.slice(1), ("csv",), EVIDENCE)
        assert [one.name for one in tmp_path.iterdir()] == ["r1"]
        assert hash_of(folder) == digest
        assert is_whole(folder, digest)


@pytest.mark.parametrize("there", [True, False], ids=["earlier", "none"])
def test_what_a_killed_attempt_left_is_removed(tmp_path: Path, there: bool) -> None:
    """Partial folders of this candidate are gone after the next one, and those of its neighbours are not."""
    folder = tmp_path / "r1"
    if there:
        freeze(folder, TABLE, ("csv",), EVIDENCE)
    for name in (".r1.0badcafe", ".r10.0badcafe", ".r2.before"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.csv").write_text("half of it")
    digest = freeze(folder, TABLE, ("csv",), EVIDENCE)
    assert is_whole(folder, digest)
    assert sorted(one.name for one in tmp_path.iterdir()) == [".r10.0badcafe", ".r2.before", "r1"]


def test_killed_between_the_renames_the_earlier_candidate_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies aside; if the next attempt fails it is back in its place, and else replaced."""
    folder, aside = tmp_path / "r1", tmp_path / ".r1.before"
    digest = freeze(folder, TABLE, ("csv",), EVIDENCE)
    folder.rename(aside)
    replace = Path.replace

    def fail(self: Path, target: Path) -> Path:
        if Path(target) == folder:
            raise OSError("interrupted")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="interrupted"):
            freeze(folder, TABLE.slice(1), ("csv",), EVIDENCE)
    assert (is_whole(folder, digest), hash_of(folder)) == (True, digest)
    folder.rename(aside)
    later = freeze(folder, TABLE.slice(1), ("csv",), EVIDENCE)
    assert later != digest
    assert is_whole(folder, later)
    assert [one.name for one in tmp_path.iterdir()] == ["r1"]
