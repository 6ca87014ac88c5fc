"""The audit of claims where counts by value are published: what holds is not broken, what is planted is seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from release_pipeline.mechanisms.by_value import PureBudget, Stage
from release_pipeline.mechanisms.by_value import mechanism as column
from release_pipeline.mechanisms.by_value.mechanism import next_stage
from release_pipeline.mechanisms.noise import NoiseStream
from tests.statistical.auditing import SOME, audit

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
PATCH = pytest.MonkeyPatch


def test_claims_hold_and_are_nearly_reached() -> None:
    """Most of the claim is proved, by few draws even; it is not broken. (With more draws: docs/measured.md.)"""
    found = audit("dp-cdf", covers="list", effort=SOME)
    assert found.holds
    assert found.proved is not None
    assert found.proved >= 0.6 * found.claimed


def _measure_by_true_counts(count: Any, facts: Any, budget: Any, stream: NoiseStream) -> list[Stage]:
    """The cells of a stage are chosen by the true counts of those before it; what is published is noisy."""
    noisy, exact = list[Stage](), list[Stage]()
    while (following := next_stage(exact, facts, budget)) is not None:
        edges, noise = following
        exact.append(Stage(edges, count(edges), noise))
        noisy.append(Stage(edges, exact[-1].counts + noise.draw(len(edges) - 1, stream), noise))
    return noisy


def _measure_with_the_same_noise(count: Any, facts: Any, budget: Any, stream: NoiseStream) -> list[Stage]:
    """The stream begins anew for each stage."""
    stages: list[Stage] = []
    while (following := next_stage(stages, facts, budget)) is not None:
        edges, noise = following
        again = NoiseStream(stream._key)  # pyright: ignore[reportPrivateUsage]
        stages.append(Stage(edges, count(edges) + noise.draw(len(edges) - 1, again), noise))
    return stages


@pytest.mark.parametrize(
    ("measure", "by"),
    [
        (_measure_by_true_counts, "which cells were counted"),
        (_measure_with_the_same_noise, "the same noise in stages 1 and 2"),
    ],
)
def test_counts_whose_stages_tell_of_each_other_are_seen(
    measure: Callable[..., list[Stage]], by: str, monkeypatch: PATCH
) -> None:
    """Cells by true counts, and noise that is drawn twice: more than twice the claim is proved, by the look that is for it."""
    monkeypatch.setattr(column, "measure", measure)
    found = audit("dp-cdf", covers="list")
    assert found.view == by
    assert found.proved is not None
    assert found.proved > 2 * found.claimed


def test_a_stage_that_is_not_charged_is_seen(monkeypatch: PATCH) -> None:
    """The first stage loses 1 of 2, and the second may lose 2 again: 3 together."""
    real = PureBudget.after
    monkeypatch.setattr(PureBudget, "after", lambda self, lost, share: real(self, 0 * lost, share))
    assert not audit("dp-cdf", covers="list", effort=SOME).holds
