"""What is attacked: columns before and after, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType

Rows: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, repr=False)
class AttackedColumn:
    """One column before and after: float64 for numbers, or integers that number categories (-1: blank) in the same way in
    both. `own` is the row of the original of each released one, where they do not lie in the same order: so that nobody need
    put a column into it."""

    name: str
    original: npt.NDArray[Any]
    released: npt.NDArray[Any]
    own: Rows | None = None

    def of_people(self, people: Rows) -> npt.NDArray[Any]:
        """The originals of some released rows."""
        rows: Rows = people if self.own is None else self.own[people]
        return np.take(self.original, rows)

    @property
    def is_numeric(self) -> bool:
        """Whether it holds numbers rather than categories."""
        return self.original.dtype.kind == "f"


@dataclass(frozen=True, slots=True, repr=False)
class Attacked:
    """A released table and what it was made of: row i of every released column comes from row i of every original one, or from
    row own[i] of it."""

    columns: tuple[AttackedColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidArgument("there is no column to attack.")
        for column in self.columns:
            kinds = {column.original.dtype.kind, column.released.dtype.kind}
            if kinds != {"f"} and not kinds <= {"i", "u"}:
                raise InvalidType("a column is neither float64 nor integer codes, before and after.", where=column.name)
            own = column.original if column.own is None else column.own
            if {own.shape, column.released.shape} != {(len(self),)}:
                raise InvalidArgument("the columns do not have equally many rows.", where=column.name)
            if column.is_numeric and not (np.isfinite(column.original).all() and np.isfinite(column.released).all()):
                raise InvalidArgument(
                    "there are missing or infinite numbers.",
                    where=column.name,
                    remedy="Leave these records out, or give the column as codes, -1 for blank.",
                )
        if len(self) < 3:
            raise InvalidArgument("fewer than three records leave nobody to compare with.")

    def __len__(self) -> int:
        return len(self.columns[0].released)
