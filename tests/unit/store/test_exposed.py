"""Who is in two populations, by the files of their vaults."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from release_pipeline.store.exposed import count_in_both


@pytest.mark.parametrize("name", ["other", "main", "temp", "system", "memory"])
def test_a_population_may_have_any_name(tmp_path: Path, name: str) -> None:
    """DuckDB names a database by its file: the one that is attached must not take that name."""
    files = [tmp_path / f"{population}.duckdb" for population in (name, "folk")]
    for place, file in enumerate(files):
        with duckdb.connect(":memory:") as connection:
            connection.execute(f"ATTACH '{file}' AS made")
            connection.execute("CREATE TABLE made.main.identities AS SELECT unnest($1) AS everywhere", [[place, 2, 3]])
    assert [count_in_both(*order, wait=1) for order in (files, files[::-1])] == [2, 2]
