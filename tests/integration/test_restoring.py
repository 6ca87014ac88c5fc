"""docs/restoring.md, executed after the first sections of docs/publishing.md: a backup that is two releases old."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sites import ROOT

BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_walk_through_works_as_it_is_written(tmp_path: Path) -> None:
    """Every command ends as the page says, and the shell stops at the first that does not."""
    before, blocks = (BLOCK.findall((ROOT / "docs" / name).read_text()) for name in ("publishing.md", "restoring.md"))
    assert len(blocks) >= 8
    programs, empty = tmp_path / "bin", tmp_path / "empty"
    programs.mkdir()
    empty.mkdir()
    program = programs / "release-pipeline"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m release_pipeline.cli "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment.pop("RELEASE_PIPELINE_HOME", None)
    done = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail"],
        input="\n".join([*before[:3], *blocks]),
        cwd=empty,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert done.stdout.count("lost; it is never made under this name again") == 2
    assert "accepted; 2 charges entered" in done.stdout
    assert "the officer has not entered what was charged after it" in done.stderr
    assert done.stdout.count("Verified: nothing failed.") == 2
    assert "3 charges to patients add up to 3" in done.stdout
