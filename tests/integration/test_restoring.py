"""docs/restoring.md, executed after the first sections of docs/publishing.md: a backup that is two releases old."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.shells import execute, open_shell, read_blocks


@pytest.mark.slow
def test_the_walk_through_works_as_it_is_written(tmp_path: Path) -> None:
    """Every command ends as the page says, and the shell stops at the first that does not."""
    before, blocks = read_blocks("publishing.md"), read_blocks("restoring.md")
    assert len(blocks) >= 8
    empty = tmp_path / "empty"
    empty.mkdir()
    with open_shell(tmp_path / "bin") as environment:
        done = execute("\n".join([*before[:3], *blocks]), empty, environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert done.stdout.count("lost; it is never made under this name again") == 2
    assert "accepted; 2 charges entered" in done.stdout
    assert "the officer has not entered what was charged after it" in done.stderr
    assert done.stdout.count("Verified: nothing failed.") == 2
    assert "3 charges to patients add up to 3" in done.stdout
