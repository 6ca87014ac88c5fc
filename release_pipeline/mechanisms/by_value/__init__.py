"""`dp-cdf`: a column's distribution from noisy counts by value. Others use `column`; the proof is in `mechanism`, and in
docs/mechanisms.md."""

from release_pipeline.mechanisms.by_value.cells import Stage
from release_pipeline.mechanisms.by_value.mechanism import ByValue, usual_centre
from release_pipeline.mechanisms.by_value.noise_laws import (
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
