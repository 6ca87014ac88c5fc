"""Random numbers that no claim depends on: for results made from noisy values, where any other choice would be as private."""

from __future__ import annotations

import numpy as np

from release_pipeline.mechanisms.noise.streams import Context, derive_key

Random = np.random.Generator


def make_random(secret: bytes, *context: Context) -> Random:
    """Return a generator with the same numbers for the same secret and context; not for noise, whose streams are ciphers."""
    return Random(np.random.Philox(int.from_bytes(derive_key(secret, *context), "big")))
