"""`sampler`: exact draws per CPU second, of the discrete Laplace by the mixture of scales, of the discrete Gaussian by sigma;
this in times of the Laplace that proposes its draws; NumPy's generators beside them for context."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from math import isqrt

import numpy as np
import numpy.typing as npt

from benchmarks.clock import cpu_seconds, runs_for
from benchmarks.figures import Figure, Target
from release_pipeline.privacy import discrete_laplace, noise_stream
from release_pipeline.privacy.noise import SECRET_BYTES, NoiseStream, discrete_gaussian

RATE = Target("at least", 3)
GAUSSIAN_RATE, GAUSSIAN_TIMES = Target("at least", 1.5), Target("at most", 3)
UNIT = "million per CPU second"
SIGMAS = {"1/2": Fraction(1, 2), "3.7": Fraction(37, 10), "2^20": Fraction(2**20), "2^40": Fraction(2**40)}
WORD_BYTES = 24  # three random words per attempt

Rng = np.random.Generator
Scales = npt.NDArray[np.int64]


def sampler(sizes: Sequence[int]) -> Iterator[Figure]:
    """Every mixture of scales; different ones are held to at least 3 million draws per CPU second. Every sigma, held to half of
    that, and to at most 3 times what its Laplace takes (sigma 1/2 keeps half of the proposals, large ones 0.76)."""
    rng = np.random.default_rng(1)
    _draw(np.ones(1, dtype=np.int64))  # makes the tables
    for case, make in _MIXTURES.items():
        for n in sizes:
            yield _rate(case, n, partial(_draw, make(rng, n)), None if make is _all_one else RATE)
    for name, sigma in SIGMAS.items():
        for n in sizes:
            yield from _gaussian(name, sigma**2, n)
    for n in sizes:
        yield _rate("NumPy float normal, not private", n, partial(rng.normal, 0, 2**20, n))
    for n in sizes:
        yield _rate("NumPy float Laplace, not private", n, partial(rng.laplace, 0, _over(2**30)(rng, n).astype(np.float64)))
    for n in sizes:
        yield _rate("NumPy bytes, 24 per draw, not private", n, partial(rng.bytes, WORD_BYTES * n))


def _rate(case: str, n: int, task: Callable[[], object], target: Target | None = None) -> Figure:
    [seconds] = cpu_seconds(task, runs=runs_for(n))
    return Figure("sampler", case, n, "CPU time", seconds, n / seconds / 1e6, UNIT, target)


def _gaussian(name: str, variance: Fraction, n: int) -> Iterator[Figure]:
    """Draws of one sigma per CPU second, and how often as long they take as draws of the Laplace that proposes them."""
    scales = np.full(n, isqrt(int(variance)) + 1)
    gaussian, laplace = cpu_seconds(lambda: discrete_gaussian(variance, n, _stream()), partial(_draw, scales), runs=runs_for(n))
    case = f"Gaussian, sigma {name}"
    yield Figure("sampler", case, n, "CPU time", gaussian, n / gaussian / 1e6, UNIT, GAUSSIAN_RATE)
    yield Figure("sampler", f"{case}, by its Laplace", n, "CPU time", gaussian, gaussian / laplace, "times", GAUSSIAN_TIMES)


def _draw(scales: Scales) -> Scales:
    return discrete_laplace(scales, _stream())


def _stream() -> NoiseStream:
    return noise_stream(secrets.token_bytes(SECRET_BYTES), "benchmark")


def _all_one(rng: Rng, n: int) -> Scales:
    return np.ones(n, dtype=np.int64)


def _up_to_1000(rng: Rng, n: int) -> Scales:
    return rng.integers(1, 1000, n, endpoint=True)


def _over(top: int) -> Callable[[Rng, int], Scales]:
    """n different scales in random order, one in each n-th of 1..top."""

    def make(rng: Rng, n: int) -> Scales:
        stride = top // n
        scales = np.arange(n, dtype=np.int64) * stride + rng.integers(1, stride, n, endpoint=True)
        rng.shuffle(scales)
        return scales

    return make


def _mixed(rng: Rng, n: int) -> Scales:
    """Each scale from 1, 1..1000, 1..2^30 and 1..2^50 with equal chances."""
    return rng.integers(1, np.array([1, 1000, 2**30, 2**50])[rng.integers(0, 4, n)], endpoint=True)


_MIXTURES: dict[str, Callable[[Rng, int], Scales]] = {
    "all 1": _all_one,
    "different, 1..1000": _up_to_1000,
    "different, 1..2^30": _over(2**30),
    "different, 1..2^50": _over(2**50),
    "mixed: 1, 1000, 2^30, 2^50": _mixed,
}
