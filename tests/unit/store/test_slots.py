"""Households filled up to their slots: as many rows for each, and no count that is about the empty ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.store.raw import RawTable

Row = tuple[str, str | None]
ROWS: list[Row] = [("b", "1"), ("a", None), ("B ", "2"), ("c", "x"), ("a", "1"), ("\uff42", None)]  # of three households


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of its own."""
    with duckdb.connect() as made:
        yield made


def load(connection: duckdb.DuckDBPyConnection, rows: list[Row]) -> RawTable:
    """These records, not filled up."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    connection.execute("CREATE OR REPLACE TABLE raw AS SELECT unnest($1) AS home, unnest($2) AS income", columns)
    return RawTable(connection, "homes.csv")


def count(table: RawTable) -> list[object]:
    """Every count about a column."""
    return [
        table.count_numbers("income", low=0, high=5, step=1, fill=0, codes=[1], texts=["x"]),
        table.count_categories("income", ["1", "2"], filled="2"),
        table.count_entries("income", lambda entry: entry == "1", filled=None),
        table.count_other_texts("income", "[0-9]"),
        table.count_unreadable("income", read_as="numbers", codes=["x"]),
        table.count_unlisted("income", ["1"], codes=[]),
        table.count_persons("home", allowed=2),
    ]


def test_counts_are_about_who_is_there(connection: duckdb.DuckDBPyConnection) -> None:
    """All of them as they were before; only the number of records is that of the slots."""
    table = load(connection, ROWS)
    before = count(table)
    assert table.empty_slots() is None
    table.fill_slots("home", 4)
    assert count(table) == before
    assert (table.count_records(), RawTable(connection, "homes.csv").count_records()) == (12, 12)
    assert table.kinds["home"] == "text"


def test_records_stay_first_and_in_their_order(connection: duckdb.DuckDBPyConnection) -> None:
    """So that a retry finds the same; empty slots have the key as their household's first record writes it, and nothing else."""
    table = load(connection, ROWS)
    table.fill_slots("home", 3)
    rows = connection.sql("SELECT home, income FROM raw").fetchall()
    assert rows == [*ROWS, ("a", None), ("c", None), ("c", None)]
    empty = table.empty_slots()
    assert empty is not None
    assert empty.tolist() == [False] * 6 + [True] * 3


@given(rows=st.lists(st.tuples(st.sampled_from("abcdefg"), st.none() | st.sampled_from("12")), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_every_household_has_its_slots(rows: list[Row]) -> None:
    """Whatever their sizes: what is added is what each lacks."""
    with duckdb.connect() as connection:
        table = load(connection, rows)
        sizes = Counter(home for home, _ in rows)
        slots = max(sizes.values())
        table.fill_slots("home", slots)
        found = connection.sql("SELECT home, income FROM raw").fetchall()
        assert found[: len(rows)] == rows
        assert Counter(home for home, _ in found) == dict.fromkeys(sizes, slots)
        assert all(income is None for _, income in found[len(rows) :])
