"""Epsilon as an exact value."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import Epsilon


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**6), min_size=1, max_size=30))
def test_split_neither_loses_nor_gains_a_unit(nano: int, weights: list[int]) -> None:
    """The parts add up exactly, and each is within one unit of its exact share."""
    parts = Epsilon(nano).split(weights)
    assert sum(part.nano for part in parts) == nano
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part.nano - Fraction(nano * weight, sum(weights))) < 1


@given(st.integers(0, 10**9), st.lists(st.integers(1, 100), min_size=2, max_size=8))
def test_split_gives_the_larger_remainders_first(nano: int, weights: list[int]) -> None:
    """Largest remainder: whoever got a unit more had at least the remainder of whoever did not."""
    total = sum(weights)
    parts = Epsilon(nano).split(weights)
    remainders = [(nano * w % total, part.nano > nano * w // total) for part, w in zip(parts, weights, strict=True)]
    got = [remainder for remainder, more in remainders if more]
    missed = [remainder for remainder, more in remainders if not more]
    assert not got or not missed or min(got) >= max(missed)


@pytest.mark.parametrize(
    ("value", "nano"),
    [
        ("0.1", 10**8),
        (Decimal("2.000000001"), 2 * 10**9 + 1),
        (Fraction(1, 8), 125 * 10**6),
        (3, 3 * 10**9),
        (0.7, 7 * 10**8),
        (1 / 3, 333_333_333),
        (0.1 + 0.2, 3 * 10**8),
        (" 1e-9 ", 1),
        (1_000_000, 10**15),
    ],
)
def test_of_is_exact_or_just_below(value: Any, nano: int) -> None:
    """Text, Decimal, Fraction and int exactly; a float as its shortest decimal, rounded down."""
    assert Epsilon.of(value).nano == nano


@pytest.mark.parametrize(
    "value", ["", "x", "nan", "inf", float("nan"), float("inf"), -1, "-0.1", "1e7", "0.0000000001", 1e300, None]
)
def test_of_refuses_what_is_no_exact_epsilon(value: Any) -> None:
    """In words, whatever the type."""
    with pytest.raises((InvalidArgument, InvalidType)):
        Epsilon.of(value)


def test_equality_order_and_text() -> None:
    """Equal to the number that it prints as; hashes agree; sums are exact."""
    assert Epsilon.of("0.1") + Epsilon.of("0.2") == Epsilon.of("0.3") == 0.3
    assert hash(Epsilon.of(2)) == hash(2)
    assert Epsilon.of(1) < Epsilon.of("1.000000001") <= 1.5
    assert [str(Epsilon.of(text)) for text in ("2", "0.50", "0.000000001", "0", "10")] == ["2", "0.5", "0.000000001", "0", "10"]
    assert Epsilon.of("0.3").times(5) == 1.5
