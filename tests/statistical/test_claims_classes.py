"""The audit of claims about classes and groups: what holds is not broken, what is planted is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from release_pipeline.masking import classes
from release_pipeline.mechanisms.columns import class_noise
from release_pipeline.rows import suppress
from tests.statistical.auditing import audit, audit_closely, draw_scaled

pytestmark = [pytest.mark.statistical, pytest.mark.slow]
PATCH = pytest.MonkeyPatch


@pytest.mark.parametrize(
    ("name", "covers", "least"),
    [
        ("k-epsilon", "record", 0.9),
        ("k-epsilon, confidence", "record", 0.5),
    ],
)
def test_claims_hold_and_are_nearly_reached(name: str, covers: str, least: float) -> None:
    """Of every tight claim most is proved, by few draws even; none is broken. (With more draws: docs/measured.md.)"""
    found = audit_closely(name, covers)
    assert found.holds
    assert found.proved is not None
    assert found.proved >= least * found.claimed


def test_kept_and_released_so_is_above_epsilon() -> None:
    """(k,epsilon)-anonymity with suppression by confidence: more than epsilon 2 is proved, which is why 2 epsilon is claimed."""
    found = audit_closely("k-epsilon, confidence", "record")
    assert found.claimed == 4
    assert found.proved is not None
    assert found.proved > 2.1


def test_noise_a_third_too_small_is_seen_in_classes(monkeypatch: PATCH) -> None:
    """And that of (k,epsilon)-anonymity."""
    monkeypatch.setattr(class_noise, "discrete_laplace", draw_scaled)
    assert not audit("k-epsilon", covers="record").holds


def test_skipped_rules_of_suppression_are_seen(monkeypatch: PATCH) -> None:
    """Classes left with fewer than k; records that stand out; small groups of kept columns."""
    with monkeypatch.context() as patch:
        patch.setattr(classes, "find_small_classes", lambda group, *_, **__: np.zeros(len(group), dtype=np.bool_))
        assert not audit("k-epsilon, confidence", covers="groups").holds
    with monkeypatch.context() as patch:
        patch.setattr(classes, "find_exposed", lambda original, *_: np.zeros(len(original[0]), dtype=np.bool_))
        assert not audit("k-epsilon, confidence", covers="intervals").holds
    with monkeypatch.context() as patch:
        nothing: Any = lambda codes, below, *, fixed=0, counts: suppress.Suppression(  # noqa: E731
            np.zeros(codes.shape, dtype=np.bool_), np.zeros(len(codes), dtype=np.bool_), counts
        )
        patch.setattr(suppress, "suppress_small_groups", nothing)
        assert not audit("idp-cbls, small groups", covers="groups").holds
    for name in ("k-epsilon, confidence", "idp-cbls, small groups"):
        assert audit(name, covers="groups").holds
