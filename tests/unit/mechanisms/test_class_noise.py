"""Noise within classes: exact scales, what a draw depends on, and every closed form against the plain sum that it stands for."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.columns.class_noise import (
    add_class_noise,
    class_diameters,
    class_scales,
    epsilon_for,
    expect_relative_errors,
    expect_square,
)
from release_pipeline.mechanisms.noise import MAX_SCALE
from release_pipeline.mechanisms.risk.standing_out import confidence_width

SECRET = bytes(range(32))
GRID = Grid.declare((0, 100), 1)
DIGITS = 60

classes_of_numbers = st.lists(st.lists(st.integers(0, 2**40), min_size=1, max_size=6), min_size=1, max_size=6)


def _lay_out(classes: list[list[int]], without: int, order: Any) -> tuple[Any, Any]:
    """The numbers and classes of all records in any order, some of them without a class."""
    records = [(number, group) for group, numbers in enumerate(classes) for number in numbers]
    records += [(2**45 * (-1) ** place, -1) for place in range(without)]
    order.shuffle(records)
    numbers, groups = zip(*records, strict=True)
    return np.array(numbers, np.int64), np.array(groups, np.int64)


@given(classes_of_numbers, st.integers(0, 3), st.randoms(use_true_random=False), st.integers(1, 20 * 10**9))
def test_scales_are_the_diameters_over_epsilon_rounded_up(classes: Any, without: int, order: Any, nano: int) -> None:
    """t = ceil(diam / epsilon) as Fractions have it, in any order of the records; who has no class counts for none."""
    q, group = _lay_out(classes, without, order)
    epsilon, spans = Epsilon(nano), [max(numbers) - min(numbers) for numbers in classes]
    assert class_diameters(q, group).tolist() == spans
    wanted = [math.ceil(span / epsilon.fraction) for span in spans]
    if max(spans) > MAX_SCALE * epsilon.fraction:
        with pytest.raises(InvalidArgument, match="too small"):
            class_scales(q, group, epsilon)
    else:
        assert class_scales(q, group, epsilon).tolist() == wanted
        assert all(t == 0 or Fraction(span, t) <= epsilon.fraction for span, t in zip(spans, wanted, strict=True))


@pytest.mark.parametrize("group", [[0, 2], [1, 1], [-1, 3]])
def test_gaps_between_the_classes_are_refused(group: list[int]) -> None:
    with pytest.raises(InvalidArgument, match="a class without records"):
        class_diameters(np.array([1, 2]), np.array(group))


def test_numbers_come_back_into_the_domain() -> None:
    """Clamping moves what left the domain to its nearest end, and changes nothing else; unclamped numbers do leave it."""
    q = np.tile(np.array([0, 3, 100, 60]), 500)
    group = np.tile(np.array([0, 0, 0, -1]), 500)
    scale = class_scales(q, group, Epsilon.of("0.5"))
    options: dict[str, Any] = {"secret": SECRET, "context": ("release", "hours")}
    free = add_class_noise(q, group, scale, GRID, clamp=False, **options)
    assert free.min() < 0
    assert free.max() > 100
    assert np.array_equal(add_class_noise(q, group, scale, GRID, **options), np.clip(free, 0, 100))
    assert np.all(free[group < 0] == 60)


def _q(t: int) -> Decimal:
    return (Decimal(-1) / t).exp()


def _tail(t: int) -> Callable[[int], Decimal]:
    """P[Z >= j] for j >= 1, from the probabilities: (1 - q)/(1 + q) times the geometric series of q^j."""
    q = _q(t)
    return lambda j: (1 - q) / (1 + q) * q**j / (1 - q)


def test_relative_errors_by_hand() -> None:
    """A class's mean of E|Z| step / |x|: zeros are left out and counted, negative numbers count by their size."""
    values = np.array([2.0, -4.0, 0.0, 5.0, 5.0, 0.0, 0.0, 1.0, 8.0])
    group = np.array([0, 0, 0, 1, 1, 2, 2, -1, 0])
    scale = np.array([6, 0, 3])
    relative, count = expect_relative_errors(values, group, scale, 0.5)
    magnitude = 0.5 / math.sinh(1 / 6)
    assert relative[:2] == pytest.approx([magnitude * (1 / 2 + 1 / 4 + 1 / 8) / 3, 0], rel=1e-14)
    assert np.isnan(relative[2])
    assert count.tolist() == [3, 2, 0]
    harmonic = 3 / (1 / 2 + 1 / 4 + 1 / 8)
    assert relative[0] == pytest.approx(magnitude / harmonic, rel=1e-14)


def _squares(x: int, t: int, width: int) -> Fraction:
    """E[(clamp(x + Z) - x)^2] by adding up z^2 P[Z = z] inside the domain and what is moved to its ends, exactly enough."""
    with localcontext() as context:
        context.prec = DIGITS
        q = _q(t)
        masses = list(accumulate([(1 - q) / (1 + q), *[q] * max(x, width - x)], lambda a, b: a * b))
        tail = _tail(t)
        inside = sum(z * z * masses[abs(z)] for z in range(-x + 1, width - x)) if width > 1 else Decimal(0)
        return Fraction(inside + x * x * (tail(x) if x else 0) + (width - x) ** 2 * (tail(width - x) if width > x else 0))


@pytest.mark.parametrize("t", [1, 7, 9_999, 10_001, 10**6, MAX_SCALE])
@pytest.mark.parametrize("width", [1, 30])
def test_squares_are_the_sum_over_the_law(t: int, width: int) -> None:
    """Every place in the domain, scales far below and above it: on both sides of where the series takes over (d/t = 1e-4)."""
    q = np.arange(width + 1)
    found = expect_square(q, np.zeros(width + 1, dtype=np.int64), np.array([t]), width)
    assert found == pytest.approx([float(_squares(x, t, width)) for x in range(width + 1)], rel=1e-8)


def _one_over(epsilon: Epsilon) -> float:
    return 1 / float(epsilon)


@pytest.mark.parametrize("wanted", [1e-6, 0.3, 2.0, 1e9])
def test_the_needed_epsilon_is_the_smallest_that_will_do(wanted: float) -> None:
    found = epsilon_for(_one_over, wanted)
    assert found is not None
    assert _one_over(found) <= wanted
    assert found.nano == 1 or _one_over(Epsilon(found.nano - 1)) > wanted


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("confidence", ["0.0001", "0.5", "0.99", "0.999999999"])
@pytest.mark.parametrize("t", [1, 3, 163])
def test_a_confidence_width_is_the_least_that_suffices(t: int, confidence: str, m: int) -> None:
    """P[|Z| <= w]^m >= c, and not so for w - 1, adding the probabilities up one by one."""
    with localcontext() as context:
        context.prec = DIGITS
        c, q = Decimal(confidence), _q(t)
        total = mass = (1 - q) / (1 + q)
        w = 0
        while total**m < c:
            mass *= q
            total += 2 * mass
            w += 1
    assert confidence_width(t, c, m) == w


@pytest.mark.parametrize("confidence", ["0", "1", "-0.5", "1.5", "99", f"0.{'9' * 60}"])
def test_a_confidence_that_is_none_is_refused(confidence: str) -> None:
    """1 would need an endless box; a share that cannot be told from 1 with the digits there are, too."""
    with pytest.raises(InvalidArgument, match="does not lie between 0 and 1"):
        confidence_width(10, Decimal(confidence), 1)
