"""What a class of records must have: k records, and l different values of every sensitive column. For `lattice` and `cuts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy.grid import IntArray


@dataclass(frozen=True, slots=True, repr=False)
class Sensitive:
    """One sensitive column: the number of each record's value in 0..values-1, and how many values occur."""

    codes: IntArray
    values: int


def as_threshold(value: object, name: str) -> int:
    """`value` as k or l: a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidType(f"{name} must be a whole number.")
    number = int(cast(int, value))
    if number < 1:
        raise InvalidArgument(f"{name} is below 1.")
    return number


def as_sensitive(codes: npt.ArrayLike | None, n: int, least: int) -> list[Sensitive]:
    """The sensitive columns of n records from integers, n of them or n x s; none where l (`least`) is 1, which every class meets.

    An l above 1 without a sensitive column is refused: nobody could have meant it.
    """
    array: npt.NDArray[Any] = np.asarray(() if codes is None else codes)
    if not array.size:
        if least > 1:
            raise InvalidArgument(
                "l is above 1 without a sensitive column.", remedy="Name the sensitive columns, or leave l at 1."
            )
        return []
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or len(array) != n:
        raise InvalidArgument(f"the sensitive columns do not have a row for each of {n:,} records.")
    if array.dtype.kind not in "iub":
        raise InvalidType("the sensitive columns must be integer codes.", remedy="Number their values first.")
    if least == 1:
        return []
    columns: list[Sensitive] = []
    for place in range(array.shape[1]):
        values, numbers = np.unique(array[:, place], return_inverse=True)
        columns.append(Sensitive(numbers.astype(np.int64, copy=False), len(values)))
    return columns
