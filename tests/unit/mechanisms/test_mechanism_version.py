"""What each version of the mechanisms makes of one table: other cells, scales or values need another version."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from release_pipeline.mechanisms import mask_column
from release_pipeline.mechanisms.catalogue import MECHANISM_VERSION
from release_pipeline.mechanisms.noise import noise_stream
from release_pipeline.mechanisms.whole_table.design import Column, TableBudget, make_design
from release_pipeline.mechanisms.whole_table.measure import CountedArrays, measure_table

SECRET = b"m" * 32
RECORDS = 600
VALUES = np.arange(RECORDS) ** 2 % 101
MADE = {  # by version and method: the hash of what is made; a fault here says that MECHANISM_VERSION must be raised
    ("1", "laplace"): "c887d779fd8f1c6f",
    ("1", "dp-um"): "b8015ae8be6f4f52",
    ("1", "dp-cdf"): "b07473fa7851ad60",
    ("1", "dp-table"): "c338b868005fa840",
}


def make(method: str) -> bytes:
    """What a method makes, as bytes: whole numbers only, which every processor makes alike."""
    if method == "dp-table":
        columns = [Column(100), Column(3, nominal=True)]
        design = make_design(columns, RECORDS, TableBudget(Fraction(4)))
        measured = measure_table(CountedArrays([VALUES, VALUES % 4].__getitem__), design, partial(noise_stream, SECRET))
        parts = [*measured.margins, *(measured.pairs[pair] for pair in sorted(measured.pairs))]
        return b"".join(np.ascontiguousarray(part, dtype="<i8").tobytes() for part in parts)
    k = None if method == "laplace" else 10
    masked = mask_column(VALUES, domain=(0, 100), grid=1, method=method, epsilon=2, k=k, secret=SECRET)
    return np.asarray(masked.values).astype("<i8").tobytes()


@pytest.mark.parametrize("method", sorted({method for _, method in MADE}))
def test_what_a_version_makes_stays(method: str) -> None:
    """Raise the version with what changes it, and note here what the new one makes."""
    assert hashlib.sha256(make(method)).hexdigest()[:16] == MADE[MECHANISM_VERSION, method]
