"""The loops of `class_noise`, compiled: which released records stand out in their class. Only `class_noise` imports this module,
when first used, because it imports numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.compiling import compiled
from release_pipeline.privacy.grid import FloatArray, IntArray


@compiled
def count_boxes(
    original: FloatArray,
    starts: IntArray,
    order: IntArray,
    released: FloatArray,
    group: IntArray,
    widths: FloatArray,
    m: int,
    k: int,
    exposed: npt.NDArray[np.bool_],
) -> None:
    """Mark the records, in their `order` by class and first column, whose box has at least one original of the class in it and
    fewer than k."""
    for place in range(len(order)):
        record, g = order[place], group[place]
        low, high = released[record, 0] - widths[g, 0], released[record, 0] + widths[g, 0]
        left, right = starts[g], starts[g + 1]
        while left < right:  # the first original of the class that is not below the box
            middle = (left + right) // 2
            if original[middle, 0] < low:
                left = middle + 1
            else:
                right = middle
        count = 0
        while left < starts[g + 1] and original[left, 0] <= high and count < k:
            inside = True
            for column in range(1, m):
                if abs(original[left, column] - released[record, column]) > widths[g, column]:
                    inside = False
                    break
            count += inside
            left += 1
        exposed[record] = 0 < count < k
