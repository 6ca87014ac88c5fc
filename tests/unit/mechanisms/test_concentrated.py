"""rho, epsilon and delta: what is said is never too small, and hardly larger than the best that CKS20 proves."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument
from release_pipeline.mechanisms.accounting.budget import NANO, epsilon_of, rho_of_pure, rho_within

MICRO = Decimal("0.000001")
DELTAS = [Decimal(text) for text in ("0.5", "0.000001", "1E-30")]
epsilons = st.integers(10**6, 10**11)
deltas = st.sampled_from(DELTAS)


def log_delta(rho: Decimal, epsilon: Decimal, alpha: Decimal) -> Decimal:
    """The logarithm of CKS20's bound as it is printed, for one alpha: exp((a-1)(a rho - eps)) / (a-1) * (1 - 1/a)^a."""
    return (alpha - 1) * (alpha * rho - epsilon) - (alpha - 1).ln() + alpha * (1 - 1 / alpha).ln()


def least_log_delta(rho: Decimal, epsilon: Decimal) -> Decimal:
    """The least of it over a grid of alpha from 1 + 10^-25 to 1 + 10^35, made finer five times around the best: by search alone,
    and of nothing that the code under test solves."""
    low, high, found = -25.0, 35.0, list[Decimal]()
    for _ in range(6):
        places = [low + (high - low) * step / 96 for step in range(97)]
        found = [log_delta(rho, epsilon, 1 + Decimal(10) ** Decimal(place)) for place in places]
        best = min(range(97), key=found.__getitem__)
        low, high = places[max(best - 1, 0)], places[min(best + 1, 96)]
    return min(found)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("nano_rho", [100, 24_355_970, 5 * 10**10])
def test_epsilon_is_the_least_that_a_slow_search_proves(nano_rho: int, delta: Decimal) -> None:
    """At the epsilon that is said the printed bound is at most delta, for the best alpha of a grid; a billionth below it no alpha
    is good enough."""
    epsilon, rho = epsilon_of(nano_rho, delta), Decimal(nano_rho) / NANO
    with localcontext() as context:
        context.prec = 100
        assert least_log_delta(rho, Decimal(epsilon) / NANO) <= delta.ln()
        assert epsilon == 0 or least_log_delta(rho, Decimal(epsilon - 1) / NANO) > delta.ln()


def test_known_answers() -> None:
    """Once computed by that search with 60 digits: epsilon 1 and 3 at a millionth, and rho 0.1."""
    assert rho_within(NANO, MICRO) == 24_355_970
    assert rho_within(3 * NANO, MICRO) == 185_069_840
    assert epsilon_of(10**8, MICRO) == 2_141_938_929


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", ["0.001", "0.5"])
def test_no_gaussian_is_worse_than_what_is_said(rho: str, delta: Decimal) -> None:
    """A Gaussian of variance 1 / (2 rho) is rho-zCDP, and its delta is known exactly (BW18 Theorem 8): at the epsilon that is
    said it is no larger. At a quarter of that epsilon it is larger, so that this can fail."""

    def normal(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    def true_delta(epsilon: float) -> float:
        mu = math.sqrt(2 * float(rho))
        return normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)

    epsilon = epsilon_of(int(Decimal(rho) * NANO), delta) / NANO
    assert true_delta(epsilon) <= float(delta) + 1e-15
    if MICRO <= delta <= Decimal("0.01"):
        assert true_delta(epsilon / 4) > float(delta)


@settings(max_examples=50)
@given(epsilons, deltas)
def test_rho_is_the_most_that_fits(nano_epsilon: int, delta: Decimal) -> None:
    """What is given fits; a billionth more does not."""
    rho = rho_within(nano_epsilon, delta)
    assert epsilon_of(rho, delta) <= nano_epsilon < epsilon_of(rho + 1, delta)


@given(st.integers(0, 10**15))
def test_pure_epsilon_costs_half_its_square_rounded_up(nano: int) -> None:
    """Exactly, by fractions."""
    exact = Fraction(nano, NANO) ** 2 / 2 * NANO
    assert 0 <= rho_of_pure(nano) - exact < 1


@pytest.mark.parametrize("delta", ["0", "1", "-0.1", "1.5", "NaN", "Infinity"])
def test_a_delta_lies_between_nothing_and_one(delta: str) -> None:
    """Everything else is refused in words, both ways."""
    for convert in (epsilon_of, rho_within):
        with pytest.raises(InvalidArgument, match="delta lies outside 0 to 1"):
            convert(NANO, Decimal(delta))
