"""Means of groups, before and after, with known answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.stages.measures.group_means import Grouping, measure_group_means

COUNT = 40
TOWNS = np.array(["north", "south"] * (COUNT // 2))
INCOMES = np.where(TOWNS == "north", 10.0, 30.0) + np.tile([-1.0, -1.0, 1.0, 1.0], COUNT // 4)
SPREAD = float(INCOMES.std())
SAME = np.arange(COUNT, dtype=np.intp)


def compare(towns: tuple[np.ndarray, np.ndarray], numbers: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, Any] | None:
    """Drawn anew is the same again."""
    before, after = (pa.chunked_array([pa.array(side)]) for side in towns)
    return measure_group_means({"town": Grouping.of(before, after, SAME)}, numbers.items(), SAME)


def measure(towns: np.ndarray, incomes: np.ndarray) -> dict[str, object]:
    """Of one column by one other."""
    found = compare((TOWNS, towns), {"income": (INCOMES, incomes)})
    assert found is not None
    return found


def test_a_group_that_moved_is_named_with_both_means() -> None:
    found = measure(TOWNS, INCOMES + 2.0 * (TOWNS == "south"))
    [worst, other] = found["worst"]  # type: ignore[misc]
    assert worst == {
        "by": "town",
        "label": "south",
        "column": "income",
        "original": 30,
        "released": 32,
        "off": pytest.approx(2 / SPREAD),
        "records": COUNT // 2,
    }
    assert other["off"] == 0
    assert found["mean"] == pytest.approx(1 / SPREAD)
