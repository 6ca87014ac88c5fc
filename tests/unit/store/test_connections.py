"""Whose fault it is that something could not be stored: the disk's, the memory's, or that of what is computed meanwhile."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from release_pipeline.errors import OutOfSpace, StoreError
from release_pipeline.store.database import WITH_MACROS, open_database, open_memory, private_errors, read_batches, transaction
from release_pipeline.store.raw import create_macros


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
    assert str(caught.value).startswith("the vault's disk is full, on which a stage goes on where its memory does not suffice.")
    assert "folk" not in str(caught.value)
    assert "zyx" not in str(caught.value)


LATE = "SELECT CASE WHEN range = 290000 THEN CAST('Mr Smith' AS INT) ELSE range END AS number FROM range(300000)"


def test_what_fails_on_the_way_is_duckdbs(tmp_path: Path) -> None:
    """As batches come: in our words, without the cell, which no exception behind them has either."""
    with pytest.raises(StoreError) as caught, open_database(tmp_path / "a.duckdb") as connection:
        list(read_batches(connection.sql(LATE).to_arrow_reader(1000)))
    error: BaseException | None = caught.value
    while error is not None:
        assert "Smith" not in f"{error}{error.args}{vars(error)}"
        error = error.__context__


def test_macros_that_a_rollback_took_are_made_again() -> None:
    """And only then."""
    with open_memory() as connection:

        def fail() -> None:
            with transaction(connection):
                create_macros(connection)
                connection.execute("SELECT * FROM nothing")

        with pytest.raises(duckdb.Error):
            fail()
        create_macros(connection)
        assert connection.execute("SELECT number_of_text(' 7.5 ')").fetchone() == (7.5,)
        assert connection in WITH_MACROS
