"""`python -m experiments.benchmarks` and the frontier run and report; how fast is for a reader to judge, not for a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from experiments import frontier
from experiments.benchmarks.__main__ import CASES
from release_pipeline.operate.demo import find_demo_data
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


def test_the_frontier_has_a_row_for_each_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "people.csv"
    table.write_text("".join(find_demo_data().read_text(encoding="utf-8").splitlines(keepends=True)[:601]), encoding="utf-8")
    asked = ["--mask", "income:0:50000:1", "mdvis:0:40:1", "--keep", "female", "--predict", "mdvis:0", "--secrets", "1"]
    assert frontier.main([str(table), *asked, "--methods", "dp-cdf", "mdav"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("600 records, AUC of the records 0.")
    rows = [dict(zip(frontier.HEADS, line.strip("| ").split(" | "), strict=True)) for line in lines[4:]]
    assert [row["method"] for row in rows] == ["dp-cdf", "mdav"]
    assert all(0 <= float(row["linked by 0"]) < float(row["all"]) <= 100 for row in rows)
    assert all(0 < float(row["KS"]) < 1 and float(row["dropped"]) == 0 for row in rows)
