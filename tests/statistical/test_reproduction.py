"""`reproduce --quick` agrees with the committed figures, and would not if a method were wrong; the committed page is that of a
full run."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from release_pipeline.errors import InvalidArgument
from release_pipeline.experiments.agreement import UNREPEATABLE, Departure, compare, read_figures
from release_pipeline.experiments.measuring import masking
from release_pipeline.experiments.names import EXPERIMENTS
from release_pipeline.experiments.reproduce import CATALOGUE, QUICK_SEED
from release_pipeline.experiments.runs import Measured, Results, Setting, make_secrets
from release_pipeline.privacy import consistency, scales, sensitivity
from release_pipeline.privacy.catalogue import METHODS
from release_pipeline.privacy.records import ClusterFacts

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

DOCS = Path(__file__).resolve().parents[2] / "docs"
VERDICTS = ("holds", "holds by the median", "holds in part", "does not hold")


@pytest.fixture(scope="module")
def quick(reference_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a quick run of everything, by the command, and what it printed."""
    folder = tmp_path_factory.mktemp("reproduce") / "run"
    command = [sys.executable, "-m", "release_pipeline.cli", "reproduce", "all", "--quick", "--jobs", "2"]
    done = subprocess.run([*command, "--data", reference_data, "-o", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_a_quick_run_agrees_with_the_committed_figures(quick: tuple[Path, str]) -> None:
    """Exit code 0 says so, with other noise than that of the committed ones; every committed figure was compared."""
    *_, last = quick[1].splitlines()
    agree, of = (int(number.replace(",", "")) for number in re.findall(r"[\d,]+", last)[:2])
    assert agree == of == len(read_figures()) > 500
    manifest = json.loads((quick[0] / "manifest.json").read_text())
    assert manifest["seed"] == QUICK_SEED != json.loads((DOCS / "reproduction" / "manifest.json").read_text())["seed"]
    assert manifest["figures that differ"] == []


def test_a_run_leaves_tables_pictures_a_page_and_a_manifest(quick: tuple[Path, str]) -> None:
    """CSV and Parquet hold the same, columns are explained, every file is as the manifest says, every picture is there, twice."""
    folder = quick[0]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert list(manifest["experiments"]) == list(EXPERIMENTS)
    for name, content in manifest["experiments"].items():
        files = {str(file.relative_to(folder)) for file in (folder / name).iterdir()}
        assert files == set(content["files"])
        for file, digest in content["files"].items():
            assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest
        tables = sorted((folder / name).glob("*.csv"))
        assert sum(len(file.read_text().splitlines()) - 1 for file in tables) == content["runs"]
        for file in tables:
            columns = pyarrow.parquet.read_table(file.with_suffix(".parquet"))
            with file.open(newline="") as lines:
                head, *rows = csv.reader(lines)
            assert (head, len(rows)) == (columns.column_names, columns.num_rows)
            told_columns = (folder / name / "README.md").read_text().partition(f"\n## {file.stem}\n")[2].partition("\n## ")[0]
            assert re.findall(r"^\| `(\w+)` \| \S.* \|$", told_columns, re.MULTILINE) == head
    page = (folder / "reproduction.md").read_text()
    pictures = re.findall(r"\]\(([\w/-]+\.svg)\)", page)
    assert len(pictures) >= 8
    assert all((folder / picture).with_suffix(kind).is_file() for picture in pictures for kind in (".svg", ".png"))


def test_the_committed_page_is_whole() -> None:
    """Of a full run: a verdict for every claim, ten runs for each at least, and its pictures."""
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    manifest = json.loads((DOCS / "reproduction" / "manifest.json").read_text())
    assert not manifest["quick"]
    assert list(manifest["experiments"]) == list(EXPERIMENTS)
    claims = [claim for content in manifest["experiments"].values() for claim in content["claims"]]
    assert len(claims) >= 25
    for claim in claims:
        assert claim["verdict"] in VERDICTS
        assert f"- **{claim['claim']}** ({claim['source']}) *{claim['verdict']}*." in page
        assert claim["why"] or claim["verdict"] == "holds"
        runs = re.search(r"every one of (\d+) runs", claim["measured"])
        assert runs is None or int(runs[1]) >= 10, claim
    for picture in re.findall(r"\]\((reproduction/[\w/-]+\.svg)\)", page):
        assert (DOCS / picture).is_file()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_quick_run_measures_what_a_full_one_does(name: str) -> None:
    """The same settings, with fewer runs: otherwise there would be nothing to compare with."""
    full = {setting.key: setting.runs for setting in CATALOGUE[name].list_settings(quick=False)}
    some = CATALOGUE[name].list_settings(quick=True)
    assert len({setting.key for setting in some}) == len(some) > 0
    assert all(setting.runs <= full[setting.key] for setting in some)
    assert {setting.kind for setting in some} == {key.partition(":")[0] for key in full} - set(UNREPEATABLE)


def measure_quickly(data: Path, name: str, chosen: Callable[[Setting], bool]) -> list[Departure]:
    experiment = CATALOGUE[name]
    settings = [setting for setting in experiment.list_settings(quick=True) if chosen(setting)]
    measured = [
        Measured(setting, experiment.measuring.measure(data, setting, make_secrets(QUICK_SEED, setting.runs)))
        for setting in settings
    ]
    compared, departures = compare(name, Results(measured), read_figures())
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

    def narrow(clusters: ClusterFacts, width: int) -> sensitivity.Moves:
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


def test_forgotten_consistency_is_found(reference_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "isotonic", lambda means, sizes: means)
    chosen = {"table": "census", "method": "dp-um", "scales": "public", "consistency": "isotonic"}
    departures = measure_quickly(
        reference_data,
        "ours",
        lambda setting: setting.kind == "columns" and all(setting.text(field) == value for field, value in chosen.items()),
    )
    assert any(departure.measure == "error" for departure in departures)
