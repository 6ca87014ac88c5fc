"""docs/publishing.md, executed: every block, in one shell, from top to bottom."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.shells import execute, open_shell, read_blocks

BLOCKS = read_blocks("publishing.md")


@pytest.mark.slow
def test_the_walk_through_works_as_it_is_written(tmp_path: Path) -> None:
    """From five keys to a dossier that verifies; every command ends well, and the shell stops at the first that does not."""
    assert len(BLOCKS) >= 8
    empty = tmp_path / "empty"
    empty.mkdir()
    with open_shell(tmp_path / "bin") as environment:
        unzip = tmp_path / "bin" / "unzip"  # not everywhere
        unzip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zipfile -e "$2" "$4"\n')
        unzip.chmod(0o755)
        done = execute("\n".join(BLOCKS), empty, environment)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert done.stdout.count("Verified: nothing failed.") == 4
    assert "NOT verified: 1 failed." in done.stdout
    package = empty / "office" / "releases" / "visits" / "once"
    assert sorted(folder.name for folder in package.iterdir()) == ["r1", "r2"]
    assert not (package / "r1" / "data.csv").exists()
    assert "visits/once/r1" in (package / "r2" / "privacy-card.json").read_text()
