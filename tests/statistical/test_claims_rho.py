"""The audit of claims by rho: a third of rho is proved, and noise of a smaller variance seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from release_pipeline.mechanisms.by_value import noise_laws
from release_pipeline.mechanisms.columns import methods
from release_pipeline.mechanisms.noise import NoiseStream, discrete_gaussian
from tests.statistical.auditing import FEW, SOME, audit

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
PATCH = pytest.MonkeyPatch


@pytest.mark.parametrize("name", ["dp-um, by rho", "dp-cdf, by rho"])
def test_a_claim_by_rho_holds_and_half_its_variance_does_not(name: str, monkeypatch: PATCH) -> None:
    """A third of rho is proved, where no event of a Gaussian could prove more than two thirds; with half of the variance far
    more, by as many draws."""
    effort = replace(SOME, counts=3_000)
    honest = audit(name, covers="list", effort=effort)
    assert honest.measure == "rho"
    assert honest.proved is not None
    assert honest.claimed / 3 < honest.proved < honest.claimed * 2 / 3

    def halved(variance: Fraction, count: int, stream: NoiseStream) -> Any:
        return discrete_gaussian(variance / 2, count, stream)

    monkeypatch.setattr(methods, "discrete_gaussian", halved)
    monkeypatch.setattr(noise_laws, "discrete_gaussian", halved)
    found = audit(name, covers="list", effort=effort)
    assert found.proved is not None
    assert found.proved > 1.4 * honest.proved


@pytest.mark.parametrize("name", ["dp-um, by rho", "dp-cdf, by rho"])
def test_a_quarter_of_the_variance_breaks_a_claim_by_rho(name: str, monkeypatch: PATCH) -> None:
    """More than rho is proved: the claim is refuted."""

    def quartered(variance: Fraction, count: int, stream: NoiseStream) -> Any:
        return discrete_gaussian(variance / 4, count, stream)

    monkeypatch.setattr(methods, "discrete_gaussian", quartered)
    monkeypatch.setattr(noise_laws, "discrete_gaussian", quartered)
    assert not audit(name, covers="list", effort=FEW).holds
