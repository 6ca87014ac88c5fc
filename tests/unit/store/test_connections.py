"""Whose fault it is that something could not be stored: the disk's, the memory's, or that of what is computed meanwhile."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlalchemy as sa

from release_pipeline.dagster_app.records import report_in_words
from release_pipeline.errors import OutOfSpace, StoreError, read_out_of_space
from release_pipeline.store.connections import open_database, private_errors, read_batches, transaction


def test_what_is_computed_while_a_database_is_open_is_not_its_fault(tmp_path: Path) -> None:
    """NumPy's want of memory, and any RuntimeError of a caller, go out as they are."""
    with pytest.raises(MemoryError), open_database(tmp_path / "a.duckdb"):
        np.empty(1 << 60, dtype=np.uint8)
    with pytest.raises(RuntimeError, match="of a caller"), open_database(tmp_path / "a.duckdb"):
        raise RuntimeError("of a caller")


def test_duckdb_without_memory_says_so(tmp_path: Path) -> None:
    """And where; it is no fault of the table."""
    file = tmp_path / "a.duckdb"
    with pytest.raises(OutOfSpace, match="this process has no memory left") as caught, open_database(file) as connection:
        connection.execute(
            "SET memory_limit = '4MB'; SET temp_directory = ''; SELECT list(i) FROM range(10000000) t(i)"
        ).fetchall()
    assert caught.value.where == str(file)


@pytest.mark.parametrize(
    "error",
    [
        duckdb.IOException('Could not write file "a": No space left on device zyx'),
        duckdb.TransactionException("Failed to commit: Could not write file: File too large zyx"),
        pa.ArrowInvalid("Error writing bytes. Detail: [errno 28] No space left on device zyx"),
    ],
)
def test_a_full_disk_is_told_as_one(error: Exception) -> None:
    """Whatever kind of error DuckDB or Arrow makes of it; without their words."""
    with pytest.raises(OutOfSpace) as caught, private_errors("/site/vault/folk.duckdb"):
        raise error
    assert str(caught.value).startswith("/site/vault/folk.duckdb: the disk is full")
    assert "zyx" not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        duckdb.OutOfMemoryException("failed to offload data block of size 96.0 KiB\nset by the 'max_temp_directory_size' zyx"),
        duckdb.IOException('Could not write file "/zyx/a.tmp/duckdb_temp_storage_S32K-0.tmp": No space left on device'),
    ],
)
def test_a_full_disk_of_spills_is_told_apart(error: Exception) -> None:
    """It is not where the vault or the source lies: to make room there would not help."""
    with pytest.raises(OutOfSpace) as caught, private_errors("/site/vault/folk.duckdb"):
        raise error
    assert str(caught.value).startswith("the disk is full that a stage goes on on where its memory does not suffice: 'spill'")
    assert "folk" not in str(caught.value)
    assert "zyx" not in str(caught.value)


def test_other_errors_of_duckdb_are_told_as_before() -> None:
    """By their kind alone."""
    with pytest.raises(StoreError, match=r"it cannot be read or written \(ConversionException\)") as caught, private_errors("a"):
        raise duckdb.ConversionException("zyx")
    assert not isinstance(caught.value, OutOfSpace)


def give_up(connection: duckdb.DuckDBPyConnection) -> None:
    """The transaction ends before its block does."""
    connection.rollback()
    raise KeyError("why")


def test_a_rollback_that_fails_does_not_hide_why(tmp_path: Path) -> None:
    """DuckDB gave the transaction up by itself: the error before is told."""
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection, pytest.raises(KeyError, match="why"), transaction(connection):
        give_up(connection)


def test_what_python_says_of_room_in_words() -> None:
    """The file that it names, the one that was to be written where there are two, or else the place that is known."""
    assert str(read_out_of_space(OSError(errno.ENOSPC, "x"), "/site")).startswith("/site: the disk is full")
    assert str(read_out_of_space(OSError(errno.EDQUOT, "x", "/a"), "/site")).startswith("/a: the disk is full")
    assert str(read_out_of_space(OSError(errno.ENOSPC, "x", "/from", None, "/to"), "/site")).startswith("/to: the disk is full")
    assert read_out_of_space(OSError(errno.EACCES, "x", "/a")) is None
    assert read_out_of_space(ValueError()) is None
    for error in (MemoryError(), OSError(errno.ENOMEM, "x"), ImportError("a.so: failed to map segment from shared object")):
        assert "this process has no memory left" in str(read_out_of_space(error))
    assert read_out_of_space(ImportError("no module named zyx")) is None


def test_dagsters_records_on_a_full_disk_print_no_statement(tmp_path: Path) -> None:
    """SQLite's own error becomes ours, with the file; and any other error has no statement and no values."""
    report_in_words()
    file = tmp_path / "runs.db"
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE t (a TEXT)"))
        connection.execute(sa.text("PRAGMA max_page_count = 3"))
        with pytest.raises(OutOfSpace) as full:
            connection.execute(sa.text("INSERT INTO t VALUES (:a)"), {"a": "zyx" * 10_000})
        assert str(full.value).startswith(f"{file}: the disk is full")
    with engine.connect() as connection, pytest.raises(sa.exc.OperationalError) as other:
        connection.execute(sa.text("INSERT INTO elsewhere VALUES (:a)"), {"a": "zyx"})
    assert "zyx" not in str(other.value)
    assert "INSERT" not in str(other.value)


def test_dagsters_records_that_cannot_be_written_for_another_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says no more than that input or output failed, and the disk has room: both that it may be are named."""
    report_in_words()
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'runs.db'}")

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(engine.dialect, "do_execute", fail)
    with engine.connect() as connection, pytest.raises(StoreError, match="neither disk nor memory") as caught:
        connection.execute(sa.text("SELECT 1"))
    assert not isinstance(caught.value, OutOfSpace)


LATE = "SELECT CASE WHEN range = 290000 THEN CAST('Mr Smith' AS INT) ELSE range END AS number FROM range(300000)"


def test_what_fails_on_the_way_is_duckdbs(tmp_path: Path) -> None:
    """As batches come: in our words, without the cell, which no exception behind them has either."""
    with pytest.raises(StoreError) as caught, open_database(tmp_path / "a.duckdb") as connection:
        list(read_batches(connection.sql(LATE).to_arrow_reader(1000)))
    error: BaseException | None = caught.value
    while error is not None:
        assert "Smith" not in f"{error}{error.args}{vars(error)}"
        error = error.__context__


@pytest.mark.parametrize(
    ("what", "becomes"),
    [
        ("Out of Memory Error: failed to pin", OutOfSpace),
        ("INTERRUPT Error: Interrupted!", KeyboardInterrupt),
        ("IO Error: No space left on device", OutOfSpace),
    ],
)
def test_what_ends_batches_is_told_as_elsewhere(what: str, becomes: type[BaseException]) -> None:
    with pytest.raises(becomes), private_errors("here"):
        list(read_batches(fail(OSError(what))))  # as Arrow tells it: without a number
    with pytest.raises(OSError, match="a disk"), private_errors("here"):
        list(read_batches(fail(OSError(errno.EIO, "a disk"))))  # the system's own


def fail(error: Exception) -> Iterator[None]:
    """After the first."""
    yield None
    raise error
