"""`make dist`: the same bytes from the same files, wherever they lie, whoever has them and since when."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sites import ROOT

pytestmark = pytest.mark.slow
MADE = ("deploy/make_dist.py", "-o")
DATE = "1700000000"


def copy_tree(folder: Path, *, umask: int, touched: int) -> Path:
    """The files of this checkout without git, as somebody has them who works with this umask and took them out on that day."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    before = os.umask(umask)
    try:
        for name in (name for name in names if name and not name.startswith(("tests/", "docs/", "experiments/"))):
            source, target = ROOT / name, folder / name
            if not source.exists():
                continue  # deleted, and not yet from the index
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                target.symlink_to(source.readlink())
            else:
                target.write_bytes(source.read_bytes())
                os.utime(target, (touched, touched))
    finally:
        os.umask(before)
    return folder


def make(folder: Path, output: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """deploy/make_dist.py of that tree."""
    kept = {name: value for name, value in os.environ.items() if name not in ("SOURCE_DATE_EPOCH", "PYTHONPATH")}
    command = [sys.executable, *MADE, str(output)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**kept, **environment}, check=False)


def test_two_builds_are_equal_byte_by_byte(tmp_path: Path) -> None:
    """In two folders, under two umasks, with files of two days; and the list of hashes is of them."""
    trees = [
        copy_tree(tmp_path / "one", umask=0o022, touched=1_600_000_000),
        copy_tree(tmp_path / "a longer name", umask=0o077, touched=1_800_000_000),
    ]
    outputs = [tmp_path / "first", tmp_path / "second"]
    for tree, output in zip(trees, outputs, strict=True):
        done = make(tree, output, SOURCE_DATE_EPOCH=DATE)
        assert done.returncode == 0, done.stderr
    names = sorted(file.name for file in outputs[0].iterdir())
    assert len(names) == 5
    for name in names:
        assert (outputs[0] / name).read_bytes() == (outputs[1] / name).read_bytes(), name
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=outputs[0], check=True)


def test_a_build_without_a_date_or_of_what_is_not_committed_is_refused(tmp_path: Path) -> None:
    """In words, and nothing is built: both would give other bytes to somebody else."""
    tree = copy_tree(tmp_path / "tree", umask=0o022, touched=1_700_000_000)
    refused = make(tree, tmp_path / "out")
    assert refused.returncode == 1
    assert refused.stderr == "This is no checkout, so the date of the files must be given: SOURCE_DATE_EPOCH=SECONDS\n"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.hooksPath=/dev/null"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *arguments], cwd=tree, check=True)
    (tree / "release_pipeline" / "stray.txt").write_text("not committed")
    refused = make(tree, tmp_path / "out")
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "Commit these first, for only what is committed is built:",
        "?? release_pipeline/stray.txt",
    ]
    assert not list((tmp_path / "out").iterdir())
