"""What the tests of the audit of claims share: how many releases they draw, and what the audit finds of one promise."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from experiments.claims import list_suite
from release_pipeline.claims.audit import Effort, Finding, audit_promise
from release_pipeline.claims.promises import list_promises
from release_pipeline.mechanisms.noise import NoiseStream, discrete_laplace

SUITE = list_suite()
SOME = Effort(explore=200, prove=6_000, classes=200_000, counted=3, counts=5_000)  # to come near a claim that holds
FEW = Effort(explore=120, prove=2_000, classes=90_000, counted=3, counts=1_200)  # to see a planted fault


def audit(name: str, *, covers: str, effort: Effort = FEW) -> Finding:
    """What the audit finds of one promise of a policy of the suite."""
    [promise] = [promise for promise in list_promises(SUITE[name]) if promise.covers == covers]
    return audit_promise(SUITE[name], promise, effort)


@cache
def audit_closely(name: str, covers: str) -> Finding:
    """Likewise with more draws; of what is not broken, once."""
    return audit(name, covers=covers, effort=SOME)


def draw_scaled(scales: Any, stream: NoiseStream) -> Any:
    """Noise a third too small."""
    return discrete_laplace((np.asarray(scales) * 7) // 10, stream)
