"""The audit of claims where counts by value are published: their noise, too small or drawn twice, is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from release_pipeline.masking import by_value
from release_pipeline.mechanisms.by_value import noise_laws
from release_pipeline.mechanisms.noise import NoiseStream, noise_stream
from tests.statistical.auditing import FEW, SOME, audit

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
PATCH = pytest.MonkeyPatch


def test_noise_of_counts_a_third_too_small_is_seen(monkeypatch: PATCH) -> None:
    """Scales times 0.7. That of counts is 2, so that whole numbers will not do: the difference of two geometric ones has any."""

    def shorter(scales: Any, stream: NoiseStream) -> Any:
        random = np.random.default_rng(stream.take_lanes(len(scales)) + int.from_bytes(stream._key))  # pyright: ignore[reportPrivateUsage]
        ends = -np.expm1(-1 / (0.7 * np.asarray(scales)))
        return random.geometric(ends) - random.geometric(ends)

    monkeypatch.setattr(noise_laws, "discrete_laplace", shorter)
    assert not audit("dp-cdf", covers="list", effort=replace(SOME, counts=8_000)).holds


@pytest.mark.parametrize(
    ("name", "covers", "by"),
    [("dp-cdf, two columns", "lists", "columns a and b"), ("dp-cdf, random parts", "list", "two parts")],
)
def test_the_same_noise_in_other_counts_is_seen(name: str, covers: str, by: str, monkeypatch: PATCH) -> None:
    """A stream that does not know its column and its part: each list keeps its claim, and all together do not."""
    monkeypatch.setattr(by_value, "noise_stream", lambda secret, *_: noise_stream(secret))
    found = audit(name, covers=covers, effort=replace(FEW, counts=8_000 if covers == "lists" else FEW.counts))
    assert not found.holds
    assert found.view == f"the same noise in {by}"
