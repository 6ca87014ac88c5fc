"""The discrete Gaussian: exact decisions against exact arithmetic, addressing, and everything that it refuses."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.noise import (
    MAX_SCALE,
    MAX_VARIANCE,
    MIN_VARIANCE,
    NoiseStream,
    WordArray,
    discrete_gaussian,
    discrete_laplace,
    exp_digits,
    gaussian,
    gaussian_magnitude,
    laplace,
    noise_stream,
)
from release_pipeline.mechanisms.noise.gaussian import GaussianLaw
from release_pipeline.mechanisms.noise.sampling import Round, below_exp

SECRET = bytes(32)
VARIANCES = [MIN_VARIANCE, Fraction(1, 4), 1, Fraction(1369, 100), 2500, Fraction(2**41, 3), 2**80, MAX_VARIANCE]
variances = st.one_of(
    st.fractions(MIN_VARIANCE, 4, max_denominator=2**40),
    st.builds(Fraction, st.integers(1, 2**100), st.integers(1, 2**40)).filter(lambda v: v >= MIN_VARIANCE),
    st.integers(1, MAX_VARIANCE).map(Fraction),
    st.builds(lambda e, add: Fraction(2) ** e + add, st.integers(1, 109), st.integers(-1, 1)),
)


def test_known_answer() -> None:
    """The first draws of the all-zero secret: a change of the stream or of the sampler would break retries across versions."""
    draws = [discrete_gaussian(v, 5, noise_stream(SECRET, "known", "gaussian", 1)).tolist() for v in VARIANCES]
    assert draws == KNOWN


def test_no_word_is_read_by_two_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace and Gaussian draws in turn, from one stream: no place of any substream is read for two of them."""
    owner: dict[tuple[int, int], int] = {}
    honest = NoiseStream.words
    draw = 0

    def watched(self: NoiseStream, substream: int, start: int, out: WordArray) -> None:
        for place in range(start, start + len(out)):
            assert owner.setdefault((substream, place), draw) == draw
        honest(self, substream, start, out)

    monkeypatch.setattr(NoiseStream, "words", watched)
    stream = noise_stream(SECRET, "places")
    for draw in range(60):
        if draw % 3:
            discrete_gaussian(30, 1, stream)
        else:
            discrete_laplace([30], stream)
    assert len({substream for substream, _ in owner}) > 4


@pytest.mark.parametrize("variance", VARIANCES)
def test_exact_arithmetic_alone_gives_the_same_draws(monkeypatch: pytest.MonkeyPatch, variance: Fraction | int) -> None:
    """With enclosures that decide nothing, every decision goes through exact arithmetic, and no draw changes."""
    fast = discrete_gaussian(variance, 1_000, noise_stream(SECRET, "exact"))
    monkeypatch.setattr(gaussian, "_SLACK", 2**33)
    monkeypatch.setattr(laplace, "_SLACK", 2**33)
    assert np.array_equal(discrete_gaussian(variance, 1_000, noise_stream(SECRET, "exact")), fast)


@given(variances, st.integers(-(2**62), 2**62))
def test_proposal_and_its_acceptance_give_the_law(variance: Fraction, z: int) -> None:
    """exp(-|z|/t) exp(-a/b) = exp(-z^2/(2 v)) times what is the same for all z, in exact fractions: v/(2 t^2)."""
    law = GaussianLaw.of(variance)
    assert (law.scale - 1) ** 2 <= variance < law.scale**2
    assert law.scale <= MAX_SCALE
    exponent = Fraction(abs(z), law.scale) + Fraction(*law.exponent(abs(z)))
    assert exponent == z**2 / (2 * variance) + variance / (2 * Fraction(law.scale) ** 2)


@given(variances, st.data())
@example(MIN_VARIANCE, None)
@example(Fraction(MAX_VARIANCE), None)
def test_enclosure(variance: Fraction, data: st.DataObject | None) -> None:
    """|E - 2^32 exp(-(|Y| - v/t)^2 / (2 v))| < 32 for all that the discrete Laplace can propose; so much slack is taken."""
    assert gaussian._SLACK == 32
    law = GaussianLaw.of(variance)
    most = laplace.MAX_MULTIPLE * law.scale - 1
    near = [0, 1, law.scale, min(most, 2 * law.scale), min(most, 8 * law.scale), most]
    if data:
        near += data.draw(st.lists(st.one_of(st.integers(0, most), st.integers(0, min(most, 9 * law.scale))), max_size=20))
    found = law.enclosure(np.array(near, dtype=np.int64))
    with localcontext(prec=60):
        for magnitude, estimate in zip(near, found, strict=True):
            a, b = law.exponent(magnitude)
            assert abs(int(estimate) - 2**32 * (-Decimal(a) / b).exp()) < 32


def test_undecided_bits_are_refined() -> None:
    """Where the word is the first 64 bits of the bound itself, more bits of that draw's own stream say whether it is kept."""
    law = GaussianLaw.of(Fraction(1369, 100))
    words = np.zeros((128, 4), dtype=np.uint64)
    words[:, 0] = 2  # U
    words[::2, 1] = 2**64 - 1  # every other proposal is rejected, the others kept
    words[:, 2] = 2**64 - 2  # V = 0, and no minus
    bound = exp_digits(*law.exponent(2), 64)
    words[:, 3] = bound
    stream = noise_stream(SECRET, "undecided")
    now = Round(stream, 1_000, 7, np.arange(128) * 3, words)
    rows, values = gaussian._attempt(law, np.full(128, law.scale, dtype=np.uint64), now)
    more = {row: stream.further_words(1_000 + 3 * row, 7, 2) for row in range(1, 128, 2)}
    assert rows.tolist() == [row for row in more if below_exp(bound, 64, *law.exponent(2), more[row])]
    assert set(values.tolist()) == {2}
    assert 10 < len(rows) < 54


@pytest.mark.parametrize("variance", [1.0, 2.5, "3", None, True, Decimal(2), np.float64(4), [1], np.array([1])])
def test_anything_but_a_rational_is_refused(variance: Any) -> None:
    """Floats, whole or not, and whatever else is no fraction."""
    with pytest.raises(InvalidType, match="fraction or a whole number, not "):
        discrete_gaussian(variance, 1, noise_stream(SECRET))


@pytest.mark.parametrize(
    ("variance", "remedy"),
    [
        (MAX_VARIANCE + 1, "a larger epsilon or a coarser grid"),
        (MAX_VARIANCE + Fraction(1, 3), "a larger epsilon or a coarser grid"),
        (10**400, "a larger epsilon or a coarser grid"),
        (MIN_VARIANCE - Fraction(1, 10**50), "a smaller epsilon or a finer grid"),
    ],
)
def test_what_is_too_large_or_too_small_is_refused(variance: Fraction | int, remedy: str) -> None:
    """With the way out; nothing is taken from the stream."""
    stream = noise_stream(SECRET)
    for ask in (lambda: discrete_gaussian(variance, 1, stream), lambda: gaussian_magnitude(variance)):
        with pytest.raises(InvalidArgument, match=r"outside 2\^-40 to 2\^110") as refused:
            ask()
        assert remedy in str(refused.value)
    assert stream.take_lanes(1) == 0


def exact_moments(variance: Fraction) -> tuple[Decimal, Decimal]:
    """E|Z| and the variance of Z, with 50 digits."""
    with localcontext(prec=50):
        v = Decimal(variance.numerator) / variance.denominator
        values = range(1, 20 * (math.isqrt(int(variance)) + 1))
        weights = [(-Decimal(z * z) / (2 * v)).exp() for z in values]
        whole = 1 + 2 * sum(weights)
        first, second = (2 * sum(z**power * w for z, w in zip(values, weights, strict=True)) for power in (1, 2))
        return first / whole, second / whole


@pytest.mark.parametrize("sigma", ["0.1", "0.25", "0.5", "1", "3.7", "50", "99.9", "100", "100.1", "130"])
def test_magnitude(sigma: str) -> None:
    """E|Z| to a relative 1e-9, below and above where the sum ends."""
    variance = Fraction(sigma) ** 2
    assert gaussian_magnitude(variance) == pytest.approx(float(exact_moments(variance)[0]), rel=1e-9)


KNOWN = [
    [0, 0, 0, 0, 0],
    [0, 1, 0, 0, 0],
    [-1, 3, 1, -1, 1],
    [-3, 5, 3, -6, 3],
    [-46, 85, 47, -52, 59],
    [-588645, 1625337, 131253, -1276110, 906548],
    [-571750159361, 1849068685186, 314764844581, -1794580981485, 3976003741],
    [-22696690782364480, 60627820714712743, 4761200123899334, -65463418377604573, 13772486635073640],
]
