"""`python -m experiments.papers`: what it leaves, and what it refuses before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.papers.__main__ import main

pytestmark = pytest.mark.slow


def test_a_quick_run_leaves_a_page_and_tables(reference_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    assert main(["kdp13", "--quick", "--jobs", "1", "--data", str(reference_data), "--output", str(folder)]) == 0
    assert "figures agree with the committed ones" in capsys.readouterr().out
    assert {file.name for file in folder.iterdir()} == {"reproduction.md", "kdp13-noisy.csv", "kdp13-clusters.csv"}
    page = (folder / "reproduction.md").read_text(encoding="utf-8")
    assert "| [kdp13](#kdp13-microaggregation-before-noise) | At epsilon 0.1 the SSE falls with k. | holds |" in page
    assert "| mdav | 0.0125 |" in page
