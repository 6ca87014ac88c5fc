"""Columns to try formulas with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

Numbers = npt.NDArray[np.float64]


def columns(least: int = 1, most: int = 30) -> st.SearchStrategy[Numbers]:
    """Columns of few different whole numbers, so that ties are common."""
    return arrays(np.float64, st.integers(least, most), elements=st.integers(-5, 5).map(float))
