"""Where arrays lie changes no byte of a release, and nothing of them is left on the disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from release_pipeline.flow import cluster, forecast, secret_files
from release_pipeline.privacy import arrays
from release_pipeline.stages import column_table
from release_pipeline.store import scratch, shared, vault
from tests.integration.sites import PARTS, Row, TinySite, make_rows, make_site
from tests.workers import Inline

KEY = bytes(range(32))
PLACES = {"memory": "in memory", "duckdb": "on disk", "spark": "on a cluster"}
FEW = 8  # rows from which a table is large here, and entries of a piece
PROTECTS = {
    "idp-cbls": "{method: idp-cbls, epsilon: 2, k: 5}",
    "dp-cdf": "{method: dp-cdf, epsilon: 4}",
}
COLUMNS = {
    "atoms": PARTS["columns"].replace("outside: fail, why", "atoms: [0, 500], outside: fail, why"),
    "wide": PARTS["columns"].replace("domain: [0, 100], grid: 0.5", "domain: [0, 4000000000000], grid: 0.001"),
}


@contextmanager
def small_pieces() -> Iterator[None]:
    """Tables of a few rows are large, and arrays of more entries than that lie on disk."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (vault, forecast):
            patch.setattr(module, "LARGE", FEW)
        patch.setattr(vault, "_LEAST_PIECE", FEW)
        patch.setattr(vault, "_PIECES", 1 << 40)
        patch.setattr(shared, "TASK", FEW)
        patch.setattr(shared, "BY_VALUE", 7 * FEW)
        patch.setattr(arrays, "PIECE", 5)
        patch.setattr(cluster, "SparkWorkers", Inline)
        patch.setattr(column_table, "PART", 7)
        patch.setattr(secret_files.secrets, "token_bytes", lambda count: bytes(range(count)))
        yield


def run_with(home: Path, engine: str, rows: list[Row] | None = None, **parts: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of the candidate, and every table that the stages left."""
    return run_tiny(make_site(home, rows=rows, cap="releases: 10", **parts), engine)


def run_tiny(tiny: TinySite, engine: str) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The same, of a site that is made."""
    (storage := tiny.home / "shared").mkdir(mode=0o700)
    (tiny.home / "site.yaml").write_text(f"engine: {engine}\nspark: {{url: 'sc://spark.example.org', storage: {storage}}}\n")
    tiny.fix_key(KEY)
    with small_pieces():
        assert tiny.flow().run().stage == "candidate"
        assert tiny.flow().microaggregate().facts["arrays"] == PLACES[engine]
    assert list(storage.iterdir()) == []
    files = {path.name: path.read_bytes() for path in tiny.folder().iterdir()}
    return files, {name: table.to_pylist() for name, table in tiny.tables().items()}


def compare(tmp_path: Path, **options: Any) -> dict[str, bytes]:
    """All engines, and nothing that differs; gives the files."""
    here, *others = (run_with(tmp_path / engine, engine, **options) for engine in PLACES)
    for there in others:
        check_equal(here, there)
    return here[0]


def check_equal(here: tuple[dict[str, bytes], dict[str, Any]], there: tuple[dict[str, bytes], dict[str, Any]]) -> None:
    """Files and tables, byte by byte; but for what notes say of when the file was delivered, which their seals cover."""
    assert here[0].keys() == there[0].keys()
    for name, content in here[0].items():
        assert content == there[0][name], name
    assert here[1].keys() == there[1].keys()
    for name, rows in here[1].items():
        told = [re.sub(r"(delivered|seal)\W+\w+", r"\1", repr(each)) for each in (rows, there[1][name])]
        assert told[0] == told[1], name


@pytest.fixture
def on_disk(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How large the arrays were that went to disk."""
    made: list[int] = []
    real = scratch.reserve_bytes

    def reserve(file: int, count: int) -> None:
        made.append(count)
        real(file, count)

    monkeypatch.setattr(scratch, "reserve_bytes", reserve)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("method", "columns"), [("idp-cbls", "atoms"), ("dp-cdf", "wide")])
def test_the_same_candidate_and_the_same_tables(tmp_path: Path, method: str, columns: str, on_disk: list[int]) -> None:
    """Byte by byte, evidence included: with ties, atoms, and grids whose words do not hold a value and its place."""
    rows = make_rows(61)
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row["rent"] = "0"
    files = compare(tmp_path, rows=rows, protect=PROTECTS[method], columns=COLUMNS[columns])
    assert "evidence.json" in files
    assert len(on_disk) > 20
