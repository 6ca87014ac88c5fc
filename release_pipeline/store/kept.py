"""Columns that a stage has read from the vault, so that one that is asked for again is not read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

KEPT_BYTES = 64 << 20  # of columns that a stage has read, the last ones read, where no more memory is spare
KEPT_ON_DISK = 12  # of those that lie on disk: it reads a column again and again, and DuckDB takes ten times what a file takes


class _Kept(NamedTuple):
    """A column that was read, and how many bytes of memory it takes: none where it lies on disk."""

    values: pa.ChunkedArray
    size: int


@dataclass(frozen=True, slots=True, repr=False)
class KeptColumns:
    """The last columns used. Nothing here knows whose they are, so that they go when their owner does."""

    columns: dict[tuple[str, str], _Kept] = field(default_factory=dict[tuple[str, str], _Kept])  # the last one used at the end

    def find(self, table: str, column: str) -> pa.ChunkedArray | None:
        """A column of a table, if it is kept."""
        kept = self.columns.get((table, column))
        return None if kept is None else kept.values

    def may_have(self, size: int) -> bool:
        """Whether so many bytes are kept wherever memory is not spare."""
        return size <= KEPT_BYTES

    def keep(
        self,
        table: str,
        columns: Mapping[str, pa.ChunkedArray],
        *,
        lies_on_disk: Callable[[int], bool],
        count_spare: Callable[[], int],
    ) -> None:
        """Keep these columns as the last ones used, and let go of the first until what is kept is little: of memory, or of the
        disk that they lie on. `lies_on_disk`: whether a column of so many rows does; `count_spare`: the bytes of memory that are
        left, half of them for these."""
        for column, values in columns.items():
            before = self.columns.pop((table, column), None)
            if before is None or before.values is not values:
                before = _Kept(values, 0 if lies_on_disk(len(values)) else values.nbytes)
            self.columns[table, column] = before
        on_disk = [key for key, kept in self.columns.items() if not kept.size]
        for key in on_disk[:-KEPT_ON_DISK]:
            del self.columns[key]
        held = {key: kept.size for key, kept in self.columns.items() if kept.size}
        left = sum(held.values())
        if left <= KEPT_BYTES:
            return
        most = max(KEPT_BYTES, count_spare() // 2)
        for key, size in held.items():
            if left <= most:
                break
            del self.columns[key]
            left -= size

    def forget(self, table: str) -> None:
        """Let go of a table that is written anew, or goes on."""
        for key in [key for key in self.columns if key[0] == table]:
            del self.columns[key]
