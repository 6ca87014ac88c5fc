"""Noise on the exact statistics of one column, spread over its records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.methods import Statistics, add_noise
from release_pipeline.privacy.noise import Context


def mask(exact: Statistics, *, secret: bytes, context: Sequence[Context], clamp: bool = True) -> npt.NDArray[np.float64]:
    """The released value of each record, in record order: inside the domain, or with `clamp=False` where the noise put it."""
    released = add_noise(exact, clamp=clamp, secret=secret, context=context)
    return released if exact.are_records else released[exact.cluster]
