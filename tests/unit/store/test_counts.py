"""What checks count of a column, for every type that a source may have, against entries that are read one by one."""

from __future__ import annotations

import duckdb
import pytest

from release_pipeline.store.raw import RawTable

COLUMNS = {
    "VARCHAR": ["' a'", "'a'", "'a '", "'A'", "''", "' '", "NULL", "'b'"],
    "INTEGER": ["1", "1", "2", "NULL", "-3"],
    "HUGEINT": ["1", "170141183460469231731687303715884105727", "NULL", "1"],
    "DECIMAL(9,2)": ["1.00", "1.50", "1", "NULL", "-0.00"],
    "DOUBLE": ["0.0", "-0.0::DOUBLE", "1.0", "1.5", "'nan'::DOUBLE", "'-nan'::DOUBLE", "'inf'::DOUBLE", "NULL", "1e300"],
    "BOOLEAN": ["true", "false", "NULL", "true"],
    "TIMESTAMP": ["TIMESTAMP '2020-01-31 10:00:00'", "TIMESTAMP '2020-01-31 10:00:00'", "NULL"],
    "INTERVAL": ["INTERVAL 1 MONTH", "INTERVAL 30 DAY", "INTERVAL 720 HOUR", "INTERVAL 30 DAY", "NULL"],  # three that are equal
}


@pytest.fixture(params=COLUMNS)
def column(request: pytest.FixtureRequest) -> tuple[RawTable, list[str | None]]:
    """A column of one type, and its entries as they are read one by one."""
    made, kind = duckdb.connect(), str(request.param)
    entries = ", ".join(f"({entry})" for entry in COLUMNS[kind])
    made.execute(f"CREATE TABLE raw AS SELECT entry::{kind} AS entry FROM (VALUES {entries}) AS of_kind(entry)")  # noqa: S608
    table = RawTable(made, "test")
    read = made.execute(f"SELECT {table.entry('entry')}(entry) FROM raw").fetchall()  # noqa: S608
    return table, [row[0] for row in read]


def test_categories_are_counted_as_they_are_read(column: tuple[RawTable, list[str | None]]) -> None:
    table, entries = column
    declared = sorted({entry for entry in entries if entry is not None})[:1]
    known = [entry for entry in entries if entry is not None]
    wanted = {"missing": entries.count(None), "undeclared": len([entry for entry in known if entry not in declared])}
    assert table.count_categories("entry", declared) == {**wanted, "different": len(set(known))}
    filled = {"missing": entries.count(None), "different": len({entry or "filled" for entry in entries})}
    assert table.count_categories("entry", known, filled="filled") == {**filled, "undeclared": 0}
