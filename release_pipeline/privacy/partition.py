"""Random parts of the records of a table (PRS20, methods.md section 5).

Parts are drawn over the slots of the table, the numbers of its rows, and never look at a value or an identity: how many records a
part has depends on n and P alone, and a record that is replaced leaves its slot, and with it its part, to the one that replaces
it. So neighbours differ in one part, and what is done to each part with streams of its own composes in parallel.
"""

from __future__ import annotations

import numpy as np

from release_pipeline.errors import InvalidArgument
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions


def draw_parts(slots: int, parts: int, stream: NoiseStream) -> IntArray:
    """The part, 0..parts-1, of each of so many slots: a keyed permutation cut into pieces whose sizes differ by at most one.

    >>> from release_pipeline.privacy.noise import noise_stream
    >>> np.bincount(draw_parts(10, 3, noise_stream(bytes(32)))).tolist()
    [4, 3, 3]
    """
    if not 1 <= parts <= slots:
        raise InvalidArgument("there must be at least one record for each part.", where="parts")
    part = np.empty(slots, dtype=np.int64)
    part[shuffled_positions(slots, stream)] = np.arange(slots, dtype=np.int64) * parts // slots
    return part
