"""The loops of `standing_out`, compiled: which released records stand out in their class. Only it imports this module, when it is
first used, because it imports numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.compiling import compiled
from release_pipeline.privacy.grid import IntArray


@compiled
def count_boxes(
    original: IntArray,
    released: IntArray,
    starts: IntArray,
    reach: IntArray,
    group: IntArray,
    k: int,
    exposed: npt.NDArray[np.bool_],
) -> None:
    """Mark those of the records, which lie by class, whose box has at least one original of the class in it and fewer than k. The
    columns of the records lie one behind the other; originals of a class ascend in the first one."""
    m = reach.shape[1]
    n = len(original) // m
    for record in range(n):
        g = group[record]
        low, high = released[record] - reach[g, 0], released[record] + reach[g, 0]
        left, right = starts[g], starts[g + 1]
        while left < right:  # the first original of the class that is not below the box
            middle = (left + right) // 2
            if original[middle] < low:
                left = middle + 1
            else:
                right = middle
        count = 0
        while left < starts[g + 1] and original[left] <= high and count < k:
            inside = True
            for column in range(1, m):
                if abs(original[column * n + left] - released[column * n + record]) > reach[g, column]:
                    inside = False
                    break
            count += inside
            left += 1
        exposed[record] = 0 < count < k
