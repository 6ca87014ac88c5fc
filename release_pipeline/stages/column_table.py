"""A table whose columns are made, or read, when they are asked for: no more than one need lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa


@dataclass(frozen=True, slots=True, repr=False)
class ColumnTable:
    """What a table tells that is asked column by column. `make` gives a column, always the same."""

    column_names: tuple[str, ...]
    num_rows: int
    make: Callable[[str], Any]

    def column(self, name: str) -> pa.ChunkedArray:
        """One column, made now."""
        made = self.make(name)
        return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])

    def select(self, names: Sequence[str]) -> pa.Table:
        """Some columns, in memory."""
        return pa.table({name: self.column(name) for name in names})


AnyTable: TypeAlias = pa.Table | ColumnTable


def load_table(table: AnyTable) -> pa.Table:
    """The whole table, in memory."""
    return table.select(table.column_names) if isinstance(table, ColumnTable) else table
