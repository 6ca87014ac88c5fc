"""The only source of randomness, and the exact discrete Laplace and Gaussian distributions.

`noise_stream(secret, *context)` gives the random words of one purpose; `discrete_laplace(scales, stream)` and
`discrete_gaussian(variance, count, stream)` turn them into noise. Nothing else in the project draws random numbers that a claim
depends on.

The distributions are exact for truly random words. The words come from a key (`streams`), so every claim is computational: it
holds against anyone who cannot distinguish these words from truly random ones, as long as the secret is secret
(docs/guarantees.md).

A draw is a function of only (secret, context, lane, scale or variance) (`sampling`), so the split of the work into calls, chunks
or threads changes nothing.
"""

from release_pipeline.mechanisms.noise.gaussian import MAX_VARIANCE, MIN_VARIANCE, discrete_gaussian
from release_pipeline.mechanisms.noise.laplace import MAX_SCALE, discrete_laplace
from release_pipeline.mechanisms.noise.moments import gaussian_magnitude
from release_pipeline.mechanisms.noise.orders import PositionMixer, drawn_positions, shuffled_first, shuffled_positions
from release_pipeline.mechanisms.noise.sampling import exp_digits
from release_pipeline.mechanisms.noise.streams import (
    SECRET_BYTES,
    Context,
    NoiseError,
    NoiseStream,
    WordArray,
    derive_key,
    noise_stream,
    take_secret,
)

__all__ = [
    "MAX_SCALE",
    "MAX_VARIANCE",
    "MIN_VARIANCE",
    "SECRET_BYTES",
    "Context",
    "NoiseError",
    "NoiseStream",
    "PositionMixer",
    "WordArray",
    "derive_key",
    "discrete_gaussian",
    "discrete_laplace",
    "drawn_positions",
    "exp_digits",
    "gaussian_magnitude",
    "noise_stream",
    "shuffled_first",
    "shuffled_positions",
    "take_secret",
]
