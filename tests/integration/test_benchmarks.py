"""`python -m benchmarks` runs and reports; how fast is for a reader to judge, not for a test."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import same
from tests.guards import HANGING

ROOT = Path(__file__).resolve().parents[2]
MEASURES = ("wall time", "CPU time", "peak memory")
METHODS = ("dp-um", "idp-ls", "idp-cbls")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def quick_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What one quick run of all benchmarks printed, and the JSON that it wrote."""
    written = tmp_path_factory.mktemp("benchmarks") / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=4 * HANGING, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout, json.loads(written.read_text(encoding="utf-8"))


def _figures(quick_run: tuple[str, dict[str, Any]], benchmark: str) -> list[dict[str, Any]]:
    return [figure for figure in quick_run[1]["figures"] if figure["benchmark"] == benchmark]


@pytest.mark.parametrize(
    "benchmark",
    [
        "sampler",
        "masking",
        "laplace",
        "grouping",
        "clustering",
        "ordering",
        "auditing",
        "synthesis",
        "pipeline",
        "commands",
        "desk",
    ],
)
def test_every_benchmark_reports_finite_figures(quick_run: tuple[str, dict[str, Any]], benchmark: str) -> None:
    figures = _figures(quick_run, benchmark)
    assert figures
    for figure in figures:
        assert math.isfinite(figure["amount"])
        assert math.isfinite(figure["ratio"])
        assert figure["amount"] >= 0
        assert figure["ratio"] >= 0
        assert figure["verdict"] in ({"ok", "MISSED"} if figure["target"] else {"context"})


def test_masking_covers_every_cluster_method_and_scope(quick_run: tuple[str, dict[str, Any]]) -> None:
    wanted = {f"{method}, {scope}" for method in METHODS for scope in ("centroid", "column")}
    wanted |= {f"{method}, column, 20 atoms" for method in ("dp-um", "idp-cbls")} | {"dp-cdf, column, 1 atoms"}
    figures = _figures(quick_run, "masking")
    assert {figure["case"] for figure in figures if figure["measure"] == "CPU time"} == wanted
    if sys.platform == "linux":
        assert {figure["case"] for figure in figures if figure["measure"] == "peak memory"} == wanted


def test_the_sampler_has_each_gaussian_beside_its_laplace(quick_run: tuple[str, dict[str, Any]]) -> None:
    mine = [figure for figure in _figures(quick_run, "sampler") if figure["case"].startswith("Gaussian")]
    rates = [figure for figure in mine if not figure["case"].endswith("Laplace")]
    times = [figure for figure in mine if figure["case"].endswith("Laplace")]
    assert {figure["target"] for figure in rates} == {"at least 1.5"}
    assert {figure["target"] for figure in times} == {"at most 3"}
    assert [figure["amount"] for figure in rates] == [figure["amount"] for figure in times]


def test_grouping_has_each_method_beside_a_plain_one(quick_run: tuple[str, dict[str, Any]]) -> None:
    figures = _figures(quick_run, "grouping")
    for ours, plain in (("OLA, ", "plain search, "), ("Mondrian, 6", "plain Mondrian, 6")):
        held = [figure for figure in figures if figure["case"].startswith(ours)]
        beside = [figure for figure in figures if figure["case"].startswith(plain)]
        assert len(held) == len(beside) >= 2
        assert {figure["target"] for figure in held} == {"at most 2"}
        assert all(mine["ratio"] == pytest.approx(mine["amount"] / its["amount"]) for mine, its in zip(held, beside, strict=True))


def test_clustering_has_each_size_beside_a_plain_loop_and_blocks(quick_run: tuple[str, dict[str, Any]]) -> None:
    figures = [figure for figure in _figures(quick_run, "clustering") if figure["measure"] == "CPU time"]
    for m in (4, 10):
        ours = [figure for figure in figures if figure["case"] == f"MDAV, {m} columns"]
        beside = [figure for figure in figures if figure["case"] == f"plain loop, {m} columns"]
        assert [figure["n"] for figure in ours] == [figure["n"] for figure in beside] == [1_080, 2_000]
        assert all(mine["ratio"] == pytest.approx(mine["amount"] / its["amount"]) for mine, its in zip(ours, beside, strict=True))
    assert [figure["n"] for figure in figures if figure["case"] == "blocks, 4 columns"] == [2_000, 4_000]
    assert [figure["ratio"] >= 1 for figure in figures if figure["case"].endswith("their SSE")] == [True, True]


def test_ordering_holds_both_orders_to_sorts_of_one_column(quick_run: tuple[str, dict[str, Any]]) -> None:
    figures = _figures(quick_run, "ordering")
    assert {figure["case"].partition(",")[0] for figure in figures} == {"hilbert", "corner", "hilbert of logs"}
    assert {(figure["target"], figure["unit"]) for figure in figures} == {("at most 6", "stable argsorts")}


def test_auditing_has_linkage_beside_both_baselines_and_the_attacks(quick_run: tuple[str, dict[str, Any]]) -> None:
    figures = _figures(quick_run, "auditing")
    for m in (4, 10):
        for case in (
            f"linkage, {m} columns",
            f"linkage by SciPy's tree, {m} columns",
            f"attacks, {m} columns",
            f"whole audit, {m} columns",
        ):
            there = [figure for figure in figures if figure["case"] == case and "time" in figure["measure"]]
            assert [figure["n"] for figure in there] == [1_000, 3_000]
        if sys.platform == "linux":
            measured = {figure["case"] for figure in figures if figure["measure"] == "peak memory"}
            assert {f"linkage, {m} columns", f"attacks, {m} columns", f"whole audit, {m} columns"} <= measured


def test_synthesis_is_counted_and_made_apart(quick_run: tuple[str, dict[str, Any]]) -> None:
    spent = {figure["case"]: figure["amount"] for figure in _figures(quick_run, "synthesis") if figure["measure"] == "CPU time"}
    assert spent["both"] == pytest.approx(spent["counts"] + spent["rows"])


def test_the_pipeline_covers_the_job_every_stage_and_both_formats(quick_run: tuple[str, dict[str, Any]]) -> None:
    figures = _figures(quick_run, "pipeline")
    stages = {"imports", "ingest", "validate", "microaggregate", "mask", "suppress", "audit", "freeze"}
    both = {"Dagster job, Parquet", "plain stages, Parquet", *stages, "ingest, CSV", "validate, CSV"}
    around, floor = "Dagster and Great Expectations", "numpy.sort of the ten columns"
    cases = {measure: {figure["case"] for figure in figures if figure["measure"] == measure} for measure in MEASURES}
    assert cases["CPU time"] == both | {around, floor}
    assert cases["wall time"] == both | {around}
    if sys.platform == "linux":
        assert cases["peak memory"] == both
    assert {figure["target"] for figure in figures if figure["case"] == around} == {"at most 20"}


def test_the_stages_are_shares_of_one_whole(quick_run: tuple[str, dict[str, Any]]) -> None:
    for measure, least in (("wall time", 0), ("CPU time", 80)):  # on a busy machine it may be long until the next stage begins
        shares = [
            figure["ratio"]
            for figure in _figures(quick_run, "pipeline")
            if figure["unit"] == "% of the plain stages" and figure["measure"] == measure
        ]
        assert least < sum(shares) <= 100


def test_the_commands_are_held_against_a_start_of_numpy(quick_run: tuple[str, dict[str, Any]]) -> None:
    figures = _figures(quick_run, "commands")
    for measure in ("wall time", "CPU time"):
        mine = {figure["case"]: figure["ratio"] for figure in figures if figure["measure"] == measure}
        assert set(mine) == {"import numpy", "check", "status", "ledger"}
        assert mine["import numpy"] == 1


def test_growth_is_reported_between_sizes(quick_run: tuple[str, dict[str, Any]]) -> None:
    assert any(figure["growth"] is not None for figure in _figures(quick_run, "laplace"))


def test_the_table_has_one_line_per_figure(quick_run: tuple[str, dict[str, Any]]) -> None:
    printed, written = quick_run
    _, _, rows = printed.partition("-" * 10)
    assert len(rows.splitlines()) - 1 == len(written["figures"])


def test_the_machine_is_described_without_its_name(quick_run: tuple[str, dict[str, Any]]) -> None:
    assert set(quick_run[1]["machine"]) == {"system", "processor", "cpus", "load", "python", "numpy", "simd"}


def test_an_unknown_benchmark_is_named() -> None:
    command = [sys.executable, "-m", "benchmarks", "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGING, check=False)
    assert done.returncode == 2
    assert "no such benchmark: nonsense" in done.stderr


def test_a_release_is_the_same_bytes_in_memory_and_on_disk() -> None:
    command = [sys.executable, "-m", "benchmarks", "same", "--quick", "--method", "isotonic", "k-epsilon"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGING, check=False)
    assert done.returncode == 0, done.stderr
    assert "1,000 rows, isotonic: the same bytes (memory, duckdb)" in done.stdout
    assert "1,000 rows, k-epsilon: the same bytes (memory, duckdb)" in done.stdout
    assert "memory: 39 hashes, 0 arrays on disk" in done.stderr


@pytest.mark.parametrize(
    ("there", "arrays", "said"),
    [
        ("bb", 3, "duckdb: room masked"),
        ("cc", 0, "duckdb: all arrays were in memory"),
        ("bb", 0, "duckdb: room masked, duckdb: all arrays were in memory"),
    ],
)
def test_what_differs_is_named(
    there: str, arrays: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And an engine that held nothing elsewhere has shown nothing."""

    def run_on(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        is_on_disk = "duckdb" in (Path(command[3]) / "site.yaml").read_text(encoding="utf-8")
        hashes = {"data.parquet": "aa", "room masked": there if is_on_disk else "cc"}
        found = {"hashes": hashes, "disk": arrays if is_on_disk else 0, "cluster": 0}
        return subprocess.CompletedProcess(command, 0, json.dumps(found), "")

    monkeypatch.setattr(same.subprocess, "run", run_on)
    with pytest.raises(SystemExit) as ended:
        same.main(["--quick", "--method", "laplace", "--folder", str(tmp_path)])
    assert ended.value.code == 1
    assert f"1,000 rows, laplace: {said} (memory, duckdb)" in capsys.readouterr().out


def test_a_site_that_was_there_keeps_its_key(tmp_path: Path) -> None:
    """The secrets of this benchmark are known to everybody."""
    for name in ("vault", "policies"):
        (tmp_path / name).mkdir()
    (tmp_path / "vault" / "key").write_bytes(b"k" * 32)
    with pytest.raises(SystemExit, match="no new site"):
        same.run_here(tmp_path, 10)
    assert (tmp_path / "vault" / "key").read_bytes() == b"k" * 32


def test_one_engine_is_compared_with_nothing() -> None:
    with pytest.raises(SystemExit) as ended:
        same.main(["--quick", "--engine", "memory"])
    assert ended.value.code == 2
