"""docs/publishing.md, executed: every block, in one shell, from top to bottom."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.sites import ROOT

BLOCKS = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "docs" / "publishing.md").read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_walk_through_works_as_it_is_written(tmp_path: Path) -> None:
    """From five keys to a dossier that verifies; every command ends well, and the shell stops at the first that does not."""
    assert len(BLOCKS) >= 8
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "release-pipeline").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m release_pipeline.cli "$@"\n')
    (programs / "unzip").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zipfile -e "$2" "$4"\n')  # not everywhere
    for program in programs.iterdir():
        program.chmod(0o755)
    empty = tmp_path / "empty"
    empty.mkdir()
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment.pop("RELEASE_PIPELINE_HOME", None)
    done = subprocess.run(
        ["bash", "-e", "-u", "-o", "pipefail"],
        input="\n".join(BLOCKS),
        cwd=empty,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert done.stdout.count("Verified: nothing failed.") == 4
    assert "NOT verified: 1 failed." in done.stdout
    package = empty / "office" / "releases" / "visits" / "once"
    assert sorted(folder.name for folder in package.iterdir()) == ["r1", "r2"]
    assert not (package / "r1" / "data.csv").exists()
    assert "visits/once/r1" in (package / "r2" / "privacy-card.json").read_text()
