"""`sampler`: exact discrete Laplace draws per CPU second, by the mixture of scales; NumPy's generators beside it for context."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.clock import cpu_seconds, runs_for
from benchmarks.figures import Figure, Target
from release_pipeline.privacy import discrete_laplace, noise_stream
from release_pipeline.privacy.noise import SECRET_BYTES

RATE = Target("at least", 3)
UNIT = "million per CPU second"
WORD_BYTES = 24  # three random words per attempt

Rng = np.random.Generator
Scales = npt.NDArray[np.int64]


def sampler(sizes: Sequence[int]) -> Iterator[Figure]:
    """Every mixture of scales; different ones are held to at least 3 million draws per CPU second."""
    rng = np.random.default_rng(1)
    _draw(np.ones(1, dtype=np.int64))  # makes the tables
    for case, make in _MIXTURES.items():
        for n in sizes:
            yield _rate(case, n, partial(_draw, make(rng, n)), None if make is _all_one else RATE)
    for n in sizes:
        yield _rate("NumPy float Laplace, not private", n, partial(rng.laplace, 0, _over(2**30)(rng, n).astype(np.float64)))
    for n in sizes:
        yield _rate("NumPy bytes, 24 per draw, not private", n, partial(rng.bytes, WORD_BYTES * n))


def _rate(case: str, n: int, task: Callable[[], object], target: Target | None = None) -> Figure:
    [seconds] = cpu_seconds(task, runs=runs_for(n))
    return Figure("sampler", case, n, "CPU time", seconds, n / seconds / 1e6, UNIT, target)


def _draw(scales: Scales) -> Scales:
    return discrete_laplace(scales, noise_stream(secrets.token_bytes(SECRET_BYTES), "benchmark"))


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
