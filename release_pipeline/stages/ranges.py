"""Where a figure of one more release should be, in 99 of 100 cases, by those of simulated ones."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

SURE = 0.995  # each end of 99%
LEAST = 1e-12  # of figures whose logarithm is taken
_LARGEST = 700.0  # whose exponential a float holds


def predict(found: npt.NDArray[np.float64], *, positive: bool, widened: float = 1.0) -> tuple[float, float]:
    """The prediction interval of Student's t for one more figure like these, two or more; for the logarithm of figures that are
    never below 0. `widened`: how many times further the ends are from the middle."""
    use_logs = positive and float(found.min()) > LEAST
    values = np.log(found) if use_logs else found
    reach = widened * quantile_of_t(len(found) - 1) * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / len(found))
    low, high = float(np.mean(values)) - reach, float(np.mean(values)) + reach
    if use_logs:
        return math.exp(low), math.exp(min(high, _LARGEST))
    return max(low, 0.0) if positive else low, high


def quantile_of_t(freedom: int) -> float:
    """The point that Student's t with so many degrees of freedom exceeds once in 200."""
    import scipy.special  # 0.1 s to import: only where it is used

    return float(scipy.special.stdtrit(freedom, SURE))
