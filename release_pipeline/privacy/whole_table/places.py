"""How likely a cut is before any record is looked at, in whole numbers: half of it the same everywhere, half of it by how far a
place is from 0 (or from the lower end), each doubling of the distance alike. A domain that is declared a hundred times too wide
costs little then: what is near 0 keeps half of the mass.

A cut s of the numbers 0..width lies between s - 1 and s, for s = 1..width. With the distance d = 1, 2, ... of a cut from the
centre on its side, its mass is `even` + 2^BITS / 2^floor(log2 d), so that the 2^j places of each doubling have 2^BITS together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

_BITS = 56  # more than a domain has, so that every share is a whole number


@dataclass(frozen=True)
class Places:
    """The cuts of a column of the numbers 0..`width`, `centre` being the one that shells are counted from."""

    width: int
    centre: int

    @cached_property
    def even(self) -> int:
        """The mass that every place has alike: so much that these have half of all."""
        return max((_shells(self.centre) + _shells(self.width - self.centre)) // max(self.width, 1), 1)

    def up_to(self, cut: int) -> int:
        """The mass of the cuts 1..cut.

        >>> places = Places(width=10, centre=4)
        >>> [places.up_to(cut) - places.up_to(cut - 1) - places.even for cut in (4, 5, 6, 8)] == [2**56, 2**56, 2**55, 2**54]
        True
        """
        below = _shells(self.centre) - _shells(self.centre - cut) if cut < self.centre else _shells(self.centre)
        above = _shells(cut - self.centre) if cut > self.centre else 0
        return self.even * cut + below + above

    def find(self, low: int, high: int, mass: int) -> int:
        """The first of the cuts low + 1..high up to which there is more than so much mass, from `low` on."""
        start = self.up_to(low)
        while high - low > 1:
            middle = (low + high) // 2
            if self.up_to(middle) - start > mass:
                high = middle
            else:
                low = middle
        return high


def _shells(distance: int) -> int:
    """The mass of the distances 1..distance without what is even."""
    if distance < 1:
        return 0
    whole = distance.bit_length() - 1
    return (whole << _BITS) + (distance - (1 << whole) + 1) * (1 << (_BITS - whole))
