"""A whole number below a total, each with the same probability: exactly, of any size."""

from __future__ import annotations

from release_pipeline.privacy.noise.streams import NoiseError, NoiseStream


def uniform_below(total: int, stream: NoiseStream) -> int:
    """As many random bits as the total has, again until they are below it: fewer than two times on average."""
    if total < 1:
        raise NoiseError("there is no whole number below a total that is not positive.", remedy="Draw from something.")
    words = stream.further_words(stream.take_lanes(1), 0, 0)
    bits = total.bit_length()
    while True:
        drawn = 0
        for _ in range(-(-bits // 64)):
            drawn = drawn << 64 | next(words)
        drawn >>= -bits % 64
        if drawn < total:
            return drawn
