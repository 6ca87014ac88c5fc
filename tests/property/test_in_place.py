"""Tables that are counted of cells as they were delivered, against records looked at one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.privacy.counting import Encoder, GroupsOfEntries, NumberEncoder, plan_tables
from release_pipeline.stages.batches import NumberCells
from release_pipeline.stages.counted import CountedInPlace, DeliveredCells
from release_pipeline.store.fingerprints import digest_batches
from release_pipeline.store.in_place import TIMES, RelationInPlace

SIZE = 11  # entries of every column


def make_column(random: np.random.Generator, kind: str, rows: int) -> pa.Array:
    """Some cells of a kind, some of them missing."""
    is_missing = random.random(rows) < random.choice([0, 0.2, 1], p=[0.3, 0.6, 0.1])
    if kind == "text":
        return pa.array(random.choice(["a", "b ", "", "ü", "'"], rows), mask=is_missing)
    numbers = random.normal(0, 4, rows).round(int(random.integers(0, 3)))
    if kind == "whole":
        return pa.array(numbers.astype(np.int64) + random.choice([0, 2**53 + 1]), mask=is_missing)
    numbers[random.random(rows) < 0.1] = np.nan
    return pa.array(numbers, mask=is_missing)


@pytest.mark.parametrize("seed", range(40))
def test_tables_of_delivered_cells_are_those_of_records(seed: int) -> None:
    """Whatever entry every cell is read as, and whatever groups entries are in; what is missing, NaN among it, has one entry."""
    random = np.random.default_rng(seed)
    rows, kinds = int(random.integers(1, 200)), random.choice(["text", "whole", "float"], 3)
    table = pa.table({f"c{place}": make_column(random, kind, rows) for place, kind in enumerate(kinds)})
    meaning: dict[str, dict[Any, int]] = {}

    def entry(name: str, cell: Any) -> int:
        known = meaning.setdefault(name, {})
        return known.setdefault(None if cell is None or cell != cell else cell, int(random.integers(SIZE)))

    entries = {name: np.array([entry(name, cell) for cell in table.column(name).to_pylist()]) for name in table.column_names}
    connection = duckdb.connect()
    place = RelationInPlace("a test", connection.from_arrow(table), {name: name for name in table.column_names}, None)

    def find_cells(name: str) -> DeliveredCells:
        cells = pa.Table.from_batches(place.count_cells(name))
        delivered = cells.column(name).combine_chunks()
        found = np.array([entry(name, cell) for cell in delivered.to_pylist()])
        return DeliveredCells(delivered, found, cells.column(TIMES).to_numpy())

    encoders: dict[str, Encoder] = {name: NumberEncoder(0.0, SIZE - 1.0, 1.0, 1.0, SIZE - 1) for name in table.column_names}
    counted = CountedInPlace(place, encoders, find_cells)
    groups = [GroupsOfEntries.of(np.arange(SIZE), random.integers(0, 4, SIZE), SIZE) for _ in table.column_names]
    wanted = [(0,), (1, 2), (0, 1, 2)]
    plan = plan_tables(groups, [4, 4, 4], wanted, [])
    found = plan.split(counted.count(plan))
    of_records = [own.find(entries[name]) for own, name in zip(groups, table.column_names, strict=True)]
    for columns, counts in zip(wanted, found, strict=True):
        assert counts.tolist() == _count(of_records, columns).tolist()
    for number, name in enumerate(table.column_names):
        assert np.repeat(counted.tally(number).entries, counted.tally(number).counts).tolist() == sorted(entries[name].tolist())
    assert counted.records == rows


def _count(groups: Sequence[Any], columns: Sequence[int]) -> Any:
    counts = np.zeros([4] * len(columns), dtype=np.int64)
    for record in zip(*(groups[column] for column in columns), strict=True):
        counts[tuple(map(int, record))] += 1
    return counts


def test_what_was_not_delivered_before_is_in_a_run() -> None:
    """Nothing is raised that could show it: the margins tell of it."""
    runs = NumberCells(np.array([1.0, 5.0])).find(pa.array([0.0, 1.0, 4.9, 7.0, None, float("nan")]))
    assert runs.tolist() == [0, 0, 0, 1, 2, 2]


@pytest.mark.parametrize(("rows", "count"), [(500, 60), (60, 60), (7, 60), (0, 5)])
def test_a_sample_has_every_record_once_at_most(rows: int, count: int) -> None:
    """The same for one key, another for another; in any order."""
    table = pa.table({"a": np.arange(rows), "b": pa.array(np.arange(rows).astype(str), pa.string())})
    place = RelationInPlace("a test", duckdb.connect().from_arrow(table), {"a": "a", "b": "b"}, None)
    drawn, again, other = (place.sample(["b", "a"], count, key) for key in (b"k" * 32, b"k" * 32, b"l" * 32))
    assert drawn.equals(again)
    assert drawn.num_rows == min(rows, count) == len(set(drawn.column("a").to_pylist()))
    assert drawn.column("b").to_pylist() == [str(number) for number in drawn.column("a").to_pylist()]
    assert rows <= count or not drawn.equals(other)


def test_a_sample_takes_each_record_as_often() -> None:
    """Of 2,000 samples of 10 of 50 records each record is in 400, give or take 5 deviations of 18."""
    place = RelationInPlace("a test", duckdb.connect().from_arrow(pa.table({"a": np.arange(50)})), {"a": "a"}, None)
    taken = np.zeros(50)
    for number in range(2000):
        taken[place.sample(["a"], 10, number.to_bytes(32, "big")).column(0).to_numpy()] += 1
    assert np.abs(taken - 400).max() < 90


def test_a_digest_tells_of_every_cell_however_records_are_cut() -> None:
    """Another cell, one that is missing, 0 for one that is missing, texts cut elsewhere: another digest."""
    records = pa.table({"a": pa.array([1.0, 0.0, None, 4.0]), "b": ["x", "yz", None, ""]})
    known = digest_batches(records.to_batches())
    assert known == digest_batches(records.to_batches(1)) == digest_batches(records.to_batches(3))
    others = [
        {"a": pa.array([1.0, 0.0, 0.0, 4.0]), "b": ["x", "yz", None, ""]},
        {"a": pa.array([1.0, None, 0.0, 4.0]), "b": ["x", "yz", None, ""]},
        {"a": pa.array([1.0, 0.0, None, 4.0]), "b": ["xy", "z", None, ""]},
        {"a": pa.array([1.0, 0.0, None, 4.0]), "b": ["x", "yz", "", None]},
        {"a": pa.array([1.0, 0.0, None, 4.0]), "c": ["x", "yz", None, ""]},
        {"a": pa.array([0.0, 1.0, None, 4.0]), "b": ["x", "yz", None, ""]},
    ]
    assert all(known != digest_batches(pa.table(other).to_batches()) for other in others)
