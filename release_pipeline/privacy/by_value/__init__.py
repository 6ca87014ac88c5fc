"""`dp-cdf`: a column's distribution from noisy counts by value. `column` is what others use of it; the proof stands in
`mechanism`, and in docs/mechanisms.md."""

from release_pipeline.privacy.by_value.column import ByValue, usual_centre
from release_pipeline.privacy.by_value.facts import Stage
from release_pipeline.privacy.by_value.noise_laws import (
    LEAST_STRENGTH,
    Budget,
    GaussianNoise,
    LaplaceNoise,
    Noise,
    PureBudget,
    RhoBudget,
)

__all__ = [
    "LEAST_STRENGTH",
    "Budget",
    "ByValue",
    "GaussianNoise",
    "LaplaceNoise",
    "Noise",
    "PureBudget",
    "RhoBudget",
    "Stage",
    "usual_centre",
]
