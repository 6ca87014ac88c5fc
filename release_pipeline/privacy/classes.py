"""The least number of records of a class. For `lattice`, `cuts` and `mdav`."""

from __future__ import annotations

from typing import cast

import numpy as np

from release_pipeline.errors import InvalidArgument, InvalidType


def as_threshold(value: object, name: str) -> int:
    """`value` as k: a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidType(f"{name} must be a whole number.")
    number = int(cast(int, value))
    if number < 1:
        raise InvalidArgument(f"{name} is below 1.")
    return number
