"""A quick run of the papers agrees with the committed figures, and would not if a method were wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.papers import masking
from experiments.papers.__main__ import PAPERS, QUICK_SEED
from experiments.papers.agreement import Departure, compare, read_figures
from experiments.papers.runs import Measured, Setting, make_secrets
from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting import scales, sensitivity
from release_pipeline.mechanisms.catalogue import METHODS
from release_pipeline.mechanisms.clusters.rank import RankClusters

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


def test_a_quick_run_agrees_with_the_committed_figures(reference_data: Path, tmp_path: Path) -> None:
    """Exit code 0 says so, with other noise than that of the committed ones; every committed figure was compared."""
    command = [
        sys.executable,
        "-m",
        "experiments.papers",
        "--quick",
        "--jobs",
        "2",
        "--data",
        reference_data,
        "--output",
        tmp_path,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    agree, of = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", done.stdout.splitlines()[-1])[:2])
    assert agree == of == len(read_figures()) > 500
    page = (tmp_path / "reproduction.md").read_text(encoding="utf-8")
    assert all(f"### Claims of {name}" in page for name in PAPERS)


def measure_quickly(data: Path, name: str, chosen: Callable[[Setting], bool]) -> list[Departure]:
    experiment = PAPERS[name]
    settings = [setting for setting in experiment.list_settings(quick=True) if chosen(setting)]
    measured = [
        Measured(setting, experiment.measure(data, setting, make_secrets(QUICK_SEED, setting.runs))) for setting in settings
    ]
    compared, departures = compare(name, measured, read_figures())
    assert compared >= 6
    return departures


def _on_census(method: str) -> Callable[[Setting], bool]:
    return lambda setting: setting.kind == "error" and setting.text("table") == "census" and setting.text("method") == method


def _scaled(factor: float) -> Callable[..., np.ndarray]:
    true = sensitivity.scales_for
    return lambda *args: np.rint(true(*args) * factor).astype(np.int64)


@pytest.mark.parametrize("method", ["dp-um", "idp-ls", "idp-cbls"])
def test_noise_that_is_too_large_is_found(method: str, reference_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales 30% too large; right ones agree."""
    assert measure_quickly(reference_data, "idp24", _on_census(method)) == []
    _scale(1.3, monkeypatch)
    departures = measure_quickly(reference_data, "idp24", _on_census(method))
    assert any(departure.measure == "sse" for departure in departures)
    assert any(departure.measure == "loss" for departure in departures)


@pytest.mark.parametrize("method", ["dp-um", "idp-ls", "idp-cbls"])
def test_noise_that_is_too_small_is_drawn_for_nobody(method: str, reference_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales 30% too small: the accountant refuses them before there is noise."""
    _scale(0.7, monkeypatch)
    with pytest.raises(InvalidArgument, match="too small for its claim"):
        measure_quickly(reference_data, "idp24", _on_census(method))


def _scale(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scales, "scales_for", _scaled(factor))
    size = scales.OfDomain.size
    monkeypatch.setattr(scales.OfDomain, "size", lambda rule, *facts: round(size(rule, *facts) * factor))


def _take_other_sums(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """In the entry of idp-cbls."""
    spec = METHODS["idp-cbls"]
    monkeypatch.setitem(METHODS, spec.name, replace(spec, sums=replace(scales.TRIMMED, **changes)))


def test_a_wrong_sensitivity_is_found_by_the_error(reference_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The width of a cluster in the place of IDP24 Prop. 9."""

    def narrow(clusters: RankClusters, width: int) -> sensitivity.Moves:
        moves = scales.TRIMMED.moves(clusters, width)
        wide = clusters.last(0) - clusters.first(0)
        return replace(moves, up=wide, down=wide)

    _take_other_sums(monkeypatch, moves=narrow)
    departures = measure_quickly(reference_data, "idp24", _on_census("idp-cbls"))
    assert any(departure.measure == "sse" for departure in departures)


def test_plain_sums_under_the_noise_of_trimmed_ones_are_found(reference_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are as before, and the claim would be void."""
    _take_other_sums(monkeypatch, take=lambda clusters: clusters.sums())
    departures = measure_quickly(reference_data, "idp24", _on_census("idp-cbls"))
    assert any(departure.measure == "without_noise" for departure in departures)


def test_one_noise_for_all_columns_is_found(reference_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are as before, and differences of columns would be without noise."""
    true = masking.add_noise
    monkeypatch.setattr(masking, "add_noise", lambda part, *, context, **options: true(part, context=context[:-1], **options))
    departures = measure_quickly(reference_data, "idp24", _on_census("dp-um"))
    assert any(departure.measure == "noise_correlation" for departure in departures)
