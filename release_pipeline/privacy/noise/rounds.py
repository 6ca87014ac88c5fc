"""Rejection sampling along the lanes of a stream: rounds of attempts, until every draw has its value.

Attempt a of draw i reads its words at a place of the stream that a and the draw's lane alone decide. So a draw is a function of
(secret, context, lane, parameter of its law) alone, and how a caller cuts the work into calls, chunks or threads changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.noise.streams import NoiseStream, WordArray

Places: TypeAlias = npt.NDArray[np.intp]

LANES = 1 << 14  # draws worked on at once: their words stay in the cache
_WHOLE_ROW_SHARE = 256  # with fewer than one draw in so many left, their words are fetched one by one


@dataclass(frozen=True, slots=True)
class Layout:
    """Where attempts find their words: attempt a of a lane has `words`, from place words * lane of substream first + a."""

    words: int
    first: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """One attempt at each draw that is still open: their places in the chunk, and a row of random words for each."""

    stream: NoiseStream
    first_lane: int
    attempt: int
    draws: Places
    words: WordArray

    def more(self, row: int, which: int) -> Iterator[int]:
        """Further words of the uniform number behind comparison `which` of the draw in this row."""
        return self.stream.further_words(self.first_lane + int(self.draws[row]), self.attempt, which)


Attempt: TypeAlias = Callable[[Round], tuple[Places, IntArray]]  # the rows that succeeded, and their values


def draw_in_rounds(draws: Places, attempt: Attempt, layout: Layout, stream: NoiseStream, first_lane: int, out: IntArray) -> None:
    """Fill `out`, whose lanes begin with `first_lane`, at the places `draws`, by rounds of attempts over those still open."""
    row = np.empty((len(out), layout.words), dtype=np.uint64)
    number = 0
    while len(draws):
        substream = layout.first + number
        if len(draws) * _WHOLE_ROW_SHARE > len(out):
            stream.words(substream, layout.words * first_lane, row.reshape(-1))
            words = row if len(draws) == len(out) else row[draws]
        else:
            words = row[: len(draws)]
            for place, draw in enumerate(draws):
                stream.words(substream, layout.words * (first_lane + int(draw)), words[place])
        kept, values = attempt(Round(stream, first_lane, number, draws, words))
        out[draws[kept]] = values
        is_open = np.ones(len(draws), dtype=np.bool_)
        is_open[kept] = False
        draws = draws[is_open]
        number += 1
