"""A figure of releases as a document has it: its middle, and where that of one more release should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from release_pipeline.stages import ranges

Numbers = npt.NDArray[np.float64]
DIGITS = 6


@dataclass(frozen=True, slots=True)
class RangeView:
    """A figure of releases under a setting."""

    low: Annotated[float | None, "99 of 100 releases should be from here"]
    middle: Annotated[float | None, "half of them below, half above"]
    high: Annotated[float | None, "to here; null where nothing can be told"]


NOTHING = RangeView(None, None, None)


def predict(found: Numbers, *, widened: float, positive: bool = False, within: bool = False) -> RangeView:
    """The range of one more figure like these. `positive`: none is below 0; `within`: all are shares. `widened`: how many times
    further the ends are from the middle, where the records of the release are others."""
    known = found[np.isfinite(found)]
    if not len(known):
        return NOTHING
    low = middle = high = float(np.median(known))
    if len(known) > 1 and float(np.ptp(known)) > 0:
        low, high = ranges.predict(known, positive=positive, widened=widened)
    if within:
        low, high = max(low, 0.0), min(high, 1.0)
    return RangeView(round_figure(low), round_figure(middle), round_figure(high))


def predict_quantile(found: Numbers, share: float, curves: Numbers, places: Numbers, *, widened: float) -> RangeView:
    """The range of a quantile, the least value that `share` of the records do not exceed. `curves`: the shares of each release at
    the ascending `places`.

    Where values are few, simulated quantiles are one of them, or two, and say little of the next: the quantile of one more
    release is above a place if less than `share` of its records are up to there. So the ends are, then, at least where the range
    of that share allows the quantile to be.
    """
    told = predict(found, widened=widened)
    known = found[np.isfinite(found)]
    if told.low is None or told.high is None or len(known) < 2 or len(np.unique(known)) > len(known) / 2:
        return told
    ends = [predict(curves[:, at], widened=widened, within=True) for at in range(len(places))]
    above = [places[at] for at, end in enumerate(ends) if end.high is not None and end.high >= share]
    below = [places[at] for at, end in enumerate(ends) if end.low is not None and end.low >= share]
    low = min(told.low, round_figure(float(above[0]))) if above else told.low
    high = max(told.high, round_figure(float(below[0] if below else places[-1]))) if len(places) else told.high
    return RangeView(low, told.middle, high)


def round_figure(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.{DIGITS}g}")
