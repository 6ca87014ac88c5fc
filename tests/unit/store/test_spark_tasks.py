"""What Spark's workers do, done here: counts of batches, texts compared as DuckDB does, draws, and codes for errors."""

from __future__ import annotations

import ast
import math
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import release_pipeline
from release_pipeline.errors import StoreError
from release_pipeline.rows.batches import TextCells
from release_pipeline.store import spark_tasks
from release_pipeline.store.raw import create_macros, entry_macro
from release_pipeline.store.spark import SparkFiles
from release_pipeline.store.spark_tasks import (
    DONE,
    FAILED,
    Piece,
    Selection,
    count_cells,
    has_entry,
    read_blob,
    run_pieces,
)

CANARY = "zyzzyva"


def run(file: Path, work: Any, *, release: tuple[str, str] | None = None) -> list[tuple[int, bytes, bytes]]:
    """The rows of a task that reads a file of one row group."""
    known, schema = file.stat(), pq.read_schema(file)
    parts = [[], [Piece(str(file), known.st_size, known.st_mtime_ns, (0,))]]
    columns = tuple((name, f"{name} here") for name in schema.names)
    numbers = pa.record_batch([pa.array([1])], names=["id"])
    rows = [row for batch in run_pieces(parts, Selection(columns, release), work, [numbers]) for row in batch.to_pylist()]
    return [(row["place"], row["entries"], row["counts"]) for row in rows]


@pytest.mark.parametrize("merged", [1, 8, 1000])
def test_cells_are_counted_however_many_batches_are_put_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    """Numbers and texts, NaN and what is missing, in many batches and small blobs."""
    monkeypatch.setattr(spark_tasks, "_MERGED", merged)
    monkeypatch.setattr(spark_tasks, "BATCH", 7)
    monkeypatch.setattr(spark_tasks, "_BLOB", 3)
    random = np.random.default_rng(1)
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    values = random.choice([np.nan, odd, -0.0, 0.0, 0.5, -1.0, 3.5], 300)
    numbers = pa.array(values, mask=random.random(300) < 0.2)
    texts = pa.array(random.choice(["a", "b", "Ü"], 300), mask=random.random(300) < 0.2)
    near = pa.array(random.integers(-(1 << 63), -(1 << 63) + 99, 300))
    far = pa.array(random.choice([-(1 << 63), 0, (1 << 63) - 1], 300))
    columns = {"x": numbers, "t": texts, "near": near, "far": far}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found: list[dict[Any, int]] = [{} for _ in columns]
    for place, blob, _ in run(tmp_path / "a.parquet", count_cells)[:-1]:
        batch = read_blob(blob)
        assert len(batch) <= 3
        for cell, times in zip(batch.column("cells").to_pylist(), batch.column("times").to_pylist(), strict=True):
            name = "nan" if isinstance(cell, float) and math.isnan(cell) else cell
            assert name not in found[place]
            found[place][name] = times
    for own, cells in zip(found, columns.values(), strict=True):
        expected = ["nan" if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells.to_pylist()]
        assert own == {cell: expected.count(cell) for cell in expected}


def test_texts_that_a_file_has_as_codes_have_the_entries_of_others() -> None:
    """Missing ones too, whether the code or its text is missing, and as many codes as their type can have."""
    many = [f"t{number}" for number in range(128)]
    coded = [
        pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 1, 3], pa.int8()), pa.array(["b", None, "a", "c"])),
        pa.DictionaryArray.from_arrays(pa.array([*range(128), None], pa.int8()), pa.array(many)),
    ]
    for cells, texts in zip(coded, (("a", "b"), tuple(many[::-1])), strict=True):
        encoder = TextCells(texts, np.arange(len(texts)))
        assert encoder.find(cells).tolist() == encoder.find(cells.cast(pa.string())).tolist()
        text = cells.dictionary[0].as_py()
        assert has_entry(cells, text).to_pylist() == has_entry(cells.cast(pa.string()), text).to_pylist()
    assert TextCells(("a", "b"), np.arange(2)).find(coded[0]).tolist() == [0, 1, 2, 2, 2]


TEXTS = ["2026", " 2026", "\u00a02026\u3000", "\t2026", "2026.0", "02026", "", " ", None, "-1", "1"]
NUMBERS = [2026, -1, 0, 1, None]
FLOATS = [2026.0, -0.0, 0.5, 1e19, float(1 << 53), math.nan, math.inf, None]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (TEXTS, pa.string()),
        (TEXTS, pa.large_string()),
        *((NUMBERS, kind) for kind in (pa.int16(), pa.int64())),
        ([255, 0, 1, None], pa.uint8()),
        *((FLOATS, kind) for kind in (pa.float32(), pa.float64())),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "text", ["2026", "0", "-0", "-1", "1", "02026", "1.0", "255", "9007199254740992", "9007199254740993", "9" * 30]
)
def test_a_release_is_compared_as_duckdb_does(cells: list[Any], kind: pa.DataType, text: str) -> None:
    """With spaces of any kind around it, and whole numbers without a point."""
    array = pa.array(cells, kind)
    connection = duckdb.connect()
    create_macros(connection)
    relation = connection.from_arrow(pa.table({"c": array}))
    expected = relation.project(f"coalesce({entry_macro(str(relation.types[0]))}(c) = '{text}', FALSE)").fetchall()
    assert [(bool(found),) for found in has_entry(array, text).to_pylist()] == expected


def quote_cells(error: type[Exception], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Raises what quotes a cell, after some were given."""
    for batch in batches:
        yield pa.record_batch([[0], [b"some"], [b""]], schema=spark_tasks.RESULT)
        raise error(batch.column(0)[0].as_py())


@pytest.mark.parametrize(
    ("error", "code"), [(ValueError, b"failed"), (pa.ArrowInvalid, b"failed"), (OSError, b"failed"), (MemoryError, b"memory")]
)
def test_an_exception_becomes_a_code_and_nothing_else_is_given(tmp_path: Path, error: type[Exception], code: bytes) -> None:
    """Where it stands, no row tells a part of what was counted."""
    pq.write_table(pa.table({"t": [CANARY]}), tmp_path / "a.parquet")
    [row] = run(tmp_path / "a.parquet", partial(quote_cells, error))
    assert row == (FAILED, code, b"1")


def test_a_task_tells_its_number_and_how_many_records_it_read(tmp_path: Path) -> None:
    """Of the release alone; and that its file is another, or damaged."""
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"year": ["1", "1 ", "2"]}), file)
    assert run(file, spark_tasks.count_nothing, release=("year", "1")) == [(DONE, b"1", b"2")]
    piece = Piece(str(file), file.stat().st_size, file.stat().st_mtime_ns + 1, (0,))
    numbers = [pa.record_batch([pa.array([0])], names=["id"])]
    [made] = run_pieces([[piece]], Selection((), ("year", "1")), spark_tasks.count_nothing, numbers)
    assert made.to_pylist() == [{"place": FAILED, "entries": b"changed", "counts": b"0"}]
    [made] = run_pieces([[replace(piece, path="/nowhere")]], Selection((), None), spark_tasks.count_nothing, numbers)
    assert made.column("entries").to_pylist() == [b"missing"]
    file.write_bytes(file.read_bytes()[:-4] + b"PAR2")
    os.utime(file, ns=(0, 0))
    piece = Piece(str(file), file.stat().st_size, 0, (0,))
    [made] = run_pieces([[piece]], Selection((), ("year", "1")), spark_tasks.count_nothing, numbers)
    assert made.column("entries").to_pylist() == [b"unreadable"]


class Told:
    """A server that gives these rows, whatever is asked."""

    where = "site.yaml: spark"

    def __init__(self, *rows: tuple[int, bytes, bytes]) -> None:
        self.rows = rows

    def run(self, start: Any, name: str) -> Iterator[tuple[int, bytes, bytes]]:
        """All rows."""
        yield from self.rows


@pytest.mark.parametrize("told", [(), (b"0", b"0"), (b"1",), (b"0", b"1")])
def test_a_pass_counts_if_every_task_tells_once_that_it_is_done(tmp_path: Path, told: tuple[bytes, ...]) -> None:
    """Files are one task here; another number is refused, and so is one that comes twice."""
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")

    def count(*numbers: bytes) -> pa.Table:
        server: Any = Told((0, b"some", b"any"), *((DONE, number, b"2") for number in numbers))
        return SparkFiles(server, "files", [tmp_path / "a.parquet"], {"x": "x"}, None).reduce(["x"], spark_tasks.count_nothing)

    assert len(count(b"0")) == 1
    with pytest.raises(StoreError, match="did not have every task done once"):
        count(*told)


@pytest.mark.parametrize("name", ["store/spark_tasks", "mechanisms/basis/counting", "rows/batches"])
def test_what_goes_to_workers_imports_numpy_and_pyarrow_alone(name: str) -> None:
    """Of ours `mechanisms.basis.counting` alone, which goes with it."""
    tree = ast.parse((Path(release_pipeline.__file__).parent / f"{name}.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    others = {module for module in imported if module.partition(".")[0] not in {"numpy", "pyarrow", *sys.stdlib_module_names}}
    assert others <= {"release_pipeline.mechanisms.basis.counting"}
