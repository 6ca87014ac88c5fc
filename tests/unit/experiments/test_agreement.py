"""Agreement with committed figures: chance passes, a method that is wrong by a third does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.papers.agreement import compare, read_figures, summarise, write_figures
from experiments.papers.runs import Measured, Setting

NOISE = 0.2  # of logarithms: as an error that few draws decide


def make_results(seed: int, runs: int, factor: float = 1.0, settings: int = 50) -> list[Measured]:
    draw = np.random.default_rng(seed)
    return [
        Measured(
            Setting.of("error", runs, method="one", number=number),
            [{"sse": factor * float(np.exp(draw.normal(number, NOISE))), "loss": factor * 0.7, "risk": 0.0} for _ in range(runs)],
        )
        for number in range(settings)
    ]


def test_figures_are_written_and_read(tmp_path: Path) -> None:
    figures = list(summarise("made", make_results(1, 10)))
    assert [figure.measure for figure in figures[:3]] == ["sse", "loss", "risk"]
    assert [figure.scale for figure in figures[:3]] == ["log", "log", "plain"]
    assert [figure.deviation for figure in figures[1:3]] == [0, 0]
    write_figures(figures, tmp_path / "figures.csv")
    read = read_figures(tmp_path / "figures.csv")
    assert len(read) == len(figures) == 150
    for one, other in zip(read, figures, strict=True):
        assert (one.setting, one.runs) == (other.setting, other.runs)
        assert one.mean == pytest.approx(other.mean, rel=1e-5)


@pytest.mark.statistical
def test_chance_passes_and_wrong_scales_do_not() -> None:
    """Ten runs of fifty settings with three each: nothing departs. With all errors of a scale 30% too small (their square: half)
    or too large, the settings together depart by far, some alone, and what has no noise everywhere."""
    committed = list(summarise("made", make_results(1, 10)))
    for seed in range(2, 12):
        compared, departures = compare("made", make_results(seed, 3), committed)
        assert (compared, departures) == (150, [])
    for factor in (0.7**2, 1.3**2):
        _, departures = compare("made", make_results(99, 3, factor), committed)
        measures = [departure.measure for departure in departures]
        assert measures.count("loss") == 50
        assert "risk" not in measures
        assert measures.count("sse") >= 2
        (together,) = (departure for departure in departures if "together" in departure.words)
        assert together.settings == "made, error: method one"
        assert float(together.words.split()[-3]) > 15
        assert ("smaller" in together.words) == (factor < 1)
