"""Tables that are counted of cells as they were delivered, against records looked at one by one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.basis.counting import Encoder, GroupsOfEntries, NumberEncoder, plan_tables
from release_pipeline.rows.batches import NumberCells
from release_pipeline.rows.counted import CountedInPlace, DeliveredCells
from release_pipeline.store.in_place import TIMES, RelationInPlace, hash_columns
from release_pipeline.store.vault import open_workspace
from tests.counting import count_cells_of

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
        cells = pa.Table.from_batches(count_cells_of(place, name))
        delivered = cells.column(name).combine_chunks()
        found = np.array([entry(name, cell) for cell in delivered.to_pylist()])
        times, cut = cells.column(TIMES).to_numpy(), int(random.integers(len(found) + 1))
        parts = [(delivered[part], found[part], times[part]) for part in (slice(cut), slice(cut, None))]
        return DeliveredCells.of_parts(parts)

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
    assert len(counted.tally(0)) == rows


def test_numbers_that_are_read_as_one_entry_are_held_once_but_for_missing_ones() -> None:
    cells, entries = pa.array([0.1, 0.2, 0.3, float("nan"), None]), np.array([0, 0, 1, 1, 1])
    held = DeliveredCells.of_parts([(cells, entries, np.arange(5))])
    assert held.cells.to_pylist()[:2] == [0.1, 0.3]
    assert len(held.cells) == 3
    assert held.entries.tolist() == [0, 1, 1]
    assert held.records.tolist() == [1, 2, 7]


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
    """Another cell, one that is missing, 0 for one that is missing, texts cut elsewhere, fewer cells: another digest."""
    records = pa.table({"a": pa.array([1.0, 0.0, None, 4.0]), "b": ["x", "yz", None, ""]})
    known = hash_columns(records.to_batches())
    assert known == hash_columns(records.to_batches(1)) == hash_columns(records.to_batches(3))
    others = {
        "a": ([1.0, 0.0, 0.0, 4.0], [1.0, None, 0.0, 4.0], [0.0, 1.0, None, 4.0], [1.0, 0.0, 4.0], [1.0, 0.0, None]),
        "b": (
            *(["xy", "z", None, ""], ["x", "yz", "", None], ["x", None, "yz", ""], ["x", "yz", ""], ["x", "yz", None]),
            ["x", "yz\0", None, ""],
        ),
    }
    for name, columns in others.items():
        hashes = [hash_columns(pa.table({name: column}).to_batches())[name] for column in columns]
        assert len({known[name], *hashes}) == len(hashes) + 1


def test_a_digest_is_of_the_type() -> None:
    """The same number, missing cell or text of another type is another cell."""
    kinds = (pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.bool_(), pa.date32())
    for cells in ([], [None]):
        assert len({hash_columns([pa.record_batch({"a": pa.array(cells, kind)})])["a"] for kind in kinds}) == len(kinds)
    moments = pa.array([0, None, 5], pa.timestamp("us"))
    here, there = (pa.record_batch({"a": moments.cast(pa.timestamp("us", zone))}) for zone in ("UTC", "America/New_York"))
    assert hash_columns([here]) == hash_columns([there]) != hash_columns([pa.record_batch({"a": moments})])


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_equal_numbers_have_one_digest(kind: pa.DataType) -> None:
    """Which of two that are equal an engine gives may be chance."""
    odd = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    hashes = [hash_columns([pa.record_batch({"a": pa.array([*two, None, 1.5], kind)})]) for two in ([-0.0, odd], [0.0, np.nan])]
    assert hashes[0] == hashes[1]
    assert hashes[0] != hash_columns([pa.record_batch({"a": pa.array([0.0, 0.0, None, 1.5], kind)})])


_CELLS = {
    pa.float64(): st.floats(),
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.string(): st.text(max_size=3),
}


@given(st.data())
def test_two_columns_have_one_digest_where_their_cells_are_the_same(data: st.DataObject) -> None:
    """However both are cut; a missing cell is as no other."""
    kind = data.draw(st.sampled_from(list(_CELLS)))
    columns = [data.draw(st.lists(st.none() | _CELLS[kind], max_size=4)) for _ in range(2)]
    sizes = [data.draw(st.integers(1, 5)) for _ in range(2)]
    first, second = (
        hash_columns([*pa.table({"a": pa.array(cells, kind)}).to_batches(size), pa.record_batch({"a": pa.array([], kind)})])
        for cells, size in zip(columns, sizes, strict=True)
    )
    plain = [[cell if cell is None else "nan" if cell != cell else cell for cell in cells] for cells in columns]
    assert (first == second) == (plain[0] == plain[1])


def test_the_same_cells_have_one_digest_wherever_they_lie(tmp_path: Path) -> None:
    """A copy in the vault, Parquet and a table of DuckDB; read by one thread or several."""
    count = 300_000
    numbers = np.arange(count, dtype=np.float64)
    records = pa.table({"a": pa.array(numbers, mask=numbers % 7 == 0), "b": pa.array(np.arange(count).astype(str), pa.string())})
    known = hash_columns(records.to_batches())
    pyarrow.parquet.write_table(records, tmp_path / "people.parquet", row_group_size=70_000)
    for threads in (1, 3):
        with open_workspace(tmp_path / f"vault{threads}", "folk", "people/1/r1") as room:
            room.write("records", records)
            assert room.hash_table("records") == known
        connection = duckdb.connect(config={"threads": threads})
        connection.from_arrow(records).create("records")
        snapshots = {
            RelationInPlace("a test", relation, {"a": "a", "b": "b"}, None).snapshot()
            for relation in (connection.read_parquet(str(tmp_path / "people.parquet")), connection.table("records"))
        }
        assert snapshots == {hashlib.sha256(json.dumps(known).encode()).hexdigest()}
