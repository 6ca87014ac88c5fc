"""Tables beside the rows: noisy counts and sums of public cells, and what is made of them (docs/mechanisms.md).

`shape` has the cells, `noise` the sensitivities and the noise, `measure` draws, `consistency` makes values that add up.
"""

from release_pipeline.privacy.tables.consistency import reconcile
from release_pipeline.privacy.tables.measure import measure_levels, sum_levels
from release_pipeline.privacy.tables.noise import (
    OF_SOME,
    CellNoise,
    Sensitivity,
    ends_of,
    gaussian_noise,
    laplace_noise,
    multiply_ends,
    noise_of_share,
    of_amounts,
    of_counts,
    sum_units,
)
from release_pipeline.privacy.tables.shape import MOST_CELLS, MOST_LEVELS, Shape

__all__ = [
    "MOST_CELLS",
    "MOST_LEVELS",
    "OF_SOME",
    "CellNoise",
    "Sensitivity",
    "Shape",
    "ends_of",
    "gaussian_noise",
    "laplace_noise",
    "measure_levels",
    "multiply_ends",
    "noise_of_share",
    "of_amounts",
    "of_counts",
    "reconcile",
    "sum_levels",
    "sum_units",
]
