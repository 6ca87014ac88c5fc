"""A figure of releases as a document has it: its middle, and where that of one more release should be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from release_pipeline.stages import ranges

Numbers = npt.NDArray[np.float64]
DIGITS = 6
MANY = 20  # figures, of which the prediction's own width says enough
WILD = 30  # times the middle, from which on the range of fewer says nothing


@dataclass(frozen=True, slots=True)
class RangeView:
    """A figure of releases under a setting."""

    low: Annotated[float | None, "99 of 100 releases should be from here; null where too few were simulated to tell"]
    middle: Annotated[float | None, "half of them below, half above"]
    high: Annotated[float | None, "to here; null likewise"]


NOTHING = RangeView(None, None, None)
Ends = tuple[float, float]
ANY, SHARE, POSITIVE = (-math.inf, math.inf), (0.0, 1.0), (0.0, math.inf)  # between which figures can be


def predict(found: Numbers, *, widened: float, positive: bool = False, ends: Ends = ANY) -> RangeView:
    """The range of one more figure like these. `positive`: none is below 0, and what multiplies them is told of; `ends`: between
    which figures can be at all. `widened`: how many times further the ends are from the middle, where the records of the release
    are others. Few figures of different orders of magnitude have a middle alone: nothing can be told of one more."""
    known = found[np.isfinite(found)]
    if not len(known):
        return NOTHING
    low = middle = high = float(np.median(known))
    if len(known) > 1 and float(np.ptp(known)) > 0:
        low, high = ranges.predict(known, positive=positive, widened=widened)
        if positive and len(known) < MANY and high > WILD * middle > 0:
            return RangeView(None, round_figure(middle), None)
    least, most = min(ends[0], float(known.min())), max(ends[1], float(known.max()))
    return RangeView(*(round_figure(min(max(end, least), most)) for end in (low, middle, high)))


def predict_quantile(
    found: Numbers, share: float, curves: Numbers, places: Numbers, *, widened: float, ends: Ends = ANY
) -> RangeView:
    """The range of a quantile, the least value that `share` of the records do not exceed. `curves`: the shares of each release at
    the ascending `places`.

    Where values are few, simulated quantiles are one of them, or two, and say little of the next: the quantile of one more
    release is above a place if less than `share` of its records are up to there. So the ends are, then, at least where the range
    of that share allows the quantile to be.
    """
    told = predict(found, widened=widened, ends=ends)
    known = found[np.isfinite(found)]
    if told.low is None or told.high is None or len(known) < 2 or len(np.unique(known)) > len(known) / 2:
        return told
    shares = [predict(curves[:, at], widened=widened, ends=SHARE) for at in range(len(places))]
    above = [places[at] for at, end in enumerate(shares) if end.high is not None and end.high >= share]
    below = [places[at] for at, end in enumerate(shares) if end.low is not None and end.low >= share]
    low = min(told.low, round_figure(float(above[0]))) if above else told.low
    high = max(told.high, round_figure(float(below[0] if below else places[-1]))) if len(places) else told.high
    return RangeView(low, told.middle, high)


def round_figure(value: float) -> float:
    """Six significant digits."""
    return float(f"{value:.{DIGITS}g}")
