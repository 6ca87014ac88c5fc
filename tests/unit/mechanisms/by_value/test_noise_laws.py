"""The stages of a column lose no more than its budget, in exact numbers, and waste little of it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.by_value.mechanism import ZOOM
from release_pipeline.mechanisms.by_value.noise_laws import PureBudget

EPSILONS = st.fractions(min_value=Fraction(1, 10**9), max_value=200, max_denominator=10**9)
WHOLE = Fraction(1)


@given(EPSILONS)
def test_stages_stay_within_epsilon(epsilon: Fraction) -> None:
    """Two stages, and three."""
    budget = PureBudget(epsilon)
    first = budget.first()
    second = budget.after(first.loss, WHOLE)
    assert first.loss + second.loss <= epsilon
    zoomed = budget.after(first.loss, ZOOM)
    third = budget.after(first.loss + zoomed.loss, WHOLE)
    assert first.loss + zoomed.loss + third.loss <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "scales"), [("1", (6, 3)), ("0.1", (60, 30)), ("2", (2, 2)), ("0.001", (5715, 3077)), ("50", (1, 1))]
)
def test_known_scales(epsilon: str, scales: tuple[int, int]) -> None:
    """At 1 they lose exactly 1; a large epsilon cannot be used up by whole numbers."""
    budget = PureBudget(Fraction(epsilon))
    first = budget.first()
    assert (first.scale, budget.after(first.loss, WHOLE).scale) == scales


def test_too_small_an_epsilon_is_refused() -> None:
    """Its noise would not fit."""
    with pytest.raises(InvalidArgument, match="too small"):
        PureBudget(Fraction(1, 2**60)).first()
