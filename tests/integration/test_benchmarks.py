"""`python -m experiments.benchmarks` runs and reports; how fast is for a reader to judge, not for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.benchmarks.__main__ import CASES
from tests.guards import HANGING

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What a module of the benchmarks printed."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=2 * HANGING, check=False)


def test_every_case_is_beside_its_baseline() -> None:
    done = run("experiments.benchmarks", "--rows", "1e3")
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    assert [row[0] for row in rows] == list(CASES)
    assert all(float(row[2]) >= 0 and float(row[3]) > 0 for row in rows)
    assert all(row[4] == CASES[row[0]].unit for row in rows)


def test_a_release_is_told_stage_by_stage() -> None:
    done = run("experiments.benchmarks.scale", "--rows", "2e3", "--columns", "2")
    assert done.returncode == 0, done.stderr
    stages = [line.split(" | ")[1] for line in done.stdout.splitlines() if line.startswith("| 2e+03")]
    assert stages[0] == "imports"
    assert stages[-4:] == ["approve", "publish", "verify", "whole"]
