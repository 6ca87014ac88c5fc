"""Where a figure of one more release should be, in 99 of 100 cases, by those of simulated ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
SURE = 0.995  # each end of 99%
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class RangeView:
    """A figure of releases under a setting."""

    low: Annotated[float | None, "99 of 100 releases should be from here"]
    middle: Annotated[float | None, "half of them below, half above"]
    high: Annotated[float | None, "to here; null where nothing can be told"]


NOTHING = RangeView(None, None, None)


def predict(found: Numbers, *, positive: bool, widened: float) -> RangeView:
    """The range of one more figure like these: a prediction interval of Student's t, for the logarithm of figures that are never
    below 0. `widened`: how many times further the ends are from the middle, where the records of the release are others."""
    known = found[np.isfinite(found)]
    if not len(known):
        return NOTHING
    middle = float(np.median(known))
    if len(known) == 1 or float(np.ptp(known)) == 0:
        return RangeView(middle, middle, middle)
    use_logs = positive and float(known.min()) > _LEAST
    values = np.log(known) if use_logs else known
    reach = widened * quantile_of_t(len(known) - 1) * float(np.std(values, ddof=1)) * math.sqrt(1 + 1 / len(known))
    centre = float(np.mean(values))
    low, high = (math.exp(centre - reach), math.exp(min(centre + reach, 700.0))) if use_logs else (centre - reach, centre + reach)
    return RangeView(max(low, 0.0) if positive else low, middle, high)


def quantile_of_t(freedom: int) -> float:
    """The point that Student's t with so many degrees of freedom exceeds once in 200."""
    import scipy.special  # 0.1 s to import: only where it is used

    return float(scipy.special.stdtrit(freedom, SURE))
