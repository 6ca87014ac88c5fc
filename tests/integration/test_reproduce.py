"""`python -m experiments.papers`: what it leaves, and what it refuses before anything is measured."""

from __future__ import annotations

import shutil
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


def test_missing_data_are_named(reference_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(reference_data / "census.csv", tmp_path)
    assert main(["idp24", "--data", str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert "wine_white.csv: UCI Machine Learning Repository" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["unknown"], "no such experiment: unknown"), (["--quick", "--commit"], "--commit is for a full run")],
)
def test_wrong_usage_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
