"""The one door to randomness: exact decisions, addressing, and everything that it refuses."""

from __future__ import annotations

import ast
import copy
import os
import pickle
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import discrete_laplace, noise, noise_stream
from release_pipeline.mechanisms.noise import (
    MAX_SCALE,
    NoiseError,
    PositionMixer,
    laplace,
    orders,
    shuffled_first,
    shuffled_positions,
)
from release_pipeline.mechanisms.noise import sampling as exponentials
from release_pipeline.mechanisms.noise.sampling import Round

SECRET = bytes(32)
FOLDER = Path(noise.__file__).parent
SOURCES = sorted(
    file for file in FOLDER.glob("*.py") if file.stem not in ("moments", "unclaimed")
)  # its floats are for people, and no draw sees them
MIXED = np.array([1, 2, 0, 1000, 2**31, 2**32 - 1, 2**32, 2**50, MAX_SCALE] * 500)


def test_same_secret_and_context_same_noise() -> None:
    """A retry regenerates the noise bit for bit."""
    once, again = (discrete_laplace(MIXED, noise_stream(SECRET, "release", 1, "income")) for _ in range(2))
    assert np.array_equal(once, again)


def test_known_answer() -> None:
    """The first draws of the all-zero secret: a change of the stream or of the sampler would break retries across versions."""
    draws = discrete_laplace([1, 10, 1000, 2**40, 2**50, 0], noise_stream(SECRET, "known", 1))
    assert draws.tolist() == KNOWN


@pytest.mark.parametrize("cuts", [(1,), (7, 8), (16_384,), (100, 20_000)])
def test_cutting_the_work_changes_nothing(cuts: tuple[int, ...]) -> None:
    """Draws depend on their place in the stream, not on how many are taken at a time."""
    scales = np.tile(MIXED, 6)
    stream = noise_stream(SECRET, "cut")
    pieces = [discrete_laplace(part, stream) for part in np.split(scales, cuts)]
    assert np.array_equal(np.concatenate(pieces), discrete_laplace(scales, noise_stream(SECRET, "cut")))


def test_exact_arithmetic_alone_gives_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an enclosure that decides nothing, every decision goes through exact arithmetic, and no draw changes."""
    fast = discrete_laplace(MIXED, noise_stream(SECRET, "exact"))
    monkeypatch.setattr(laplace, "_SLACK", 2**33)
    assert np.array_equal(discrete_laplace(MIXED, noise_stream(SECRET, "exact")), fast)


@given(st.integers(1, MAX_SCALE), st.data())
def test_enclosure_of_exp(scale: int, data: st.DataObject) -> None:
    """|E - 2^32 exp(-u/t)| < 16 for all admissible u and t, also where t has more than 32 bits."""
    u = data.draw(st.one_of(st.integers(0, scale - 1), st.just(scale - 1), st.just(scale // 2)))
    found = int(laplace._exp_enclosure(np.array([u], dtype=np.uint64), np.array([scale], dtype=np.uint64))[0])
    with localcontext(prec=60):
        assert abs(found - 2**32 * (-Decimal(u) / scale).exp()) < 16


@given(st.integers(1, 2**60), st.integers(1, 2**60), st.sampled_from([1, 63, 64, 200]))
def test_exp_digits_is_the_floor(a: int, b: int, bits: int) -> None:
    """floor(2^bits exp(-a/b)), against decimal arithmetic of 200 digits."""
    a = min(a, 100 * b)
    with localcontext(prec=200):
        assert noise.exp_digits(a, b, bits) == int(2**bits * (-Decimal(a) / b).exp())


def test_undecided_bits_are_refined() -> None:
    """A number that agrees with exp(-a/b) in all known bits is decided by the next ones, either way."""
    known = noise.exp_digits(1, 3, 64)
    next_word = noise.exp_digits(1, 3, 128) & (2**64 - 1)
    assert exponentials.below_exp(known, 64, 1, 3, [next_word - 1])
    assert not exponentials.below_exp(known, 64, 1, 3, [next_word + 1])
    following = noise.exp_digits(1, 3, 192) & (2**64 - 1)
    assert exponentials.below_exp(known, 64, 1, 3, [next_word, following - 1])


def test_geometric_part_at_its_thresholds() -> None:
    """Bits just below floor(2^63 exp(-v)) reach v, just above they do not, and equal ones are settled by more bits."""
    thresholds = laplace._geometric_thresholds()[:40]
    stream, rows = noise_stream(SECRET, "thresholds"), np.arange(40) + 5
    now = Round(stream, 100, 2, np.arange(45) * 3, np.empty((45, 3), dtype=np.uint64))
    levels = np.arange(1, len(thresholds) + 1)
    assert laplace._geometric(thresholds - np.uint64(1), rows, now).tolist() == levels.tolist()
    assert laplace._geometric(thresholds + np.uint64(1), rows, now).tolist() == (levels - 1).tolist()
    settled = laplace._geometric(thresholds, rows, now)
    assert set((levels - settled.astype(np.int64)).tolist()) == {0, 1}
    for row, level, threshold, found in zip(rows.tolist(), levels.tolist(), thresholds.tolist(), settled.tolist(), strict=True):
        assert (found == level) == exponentials.below_exp(threshold, 63, level, 1, stream.further_words(100 + 3 * row, 2, 1))


@pytest.mark.parametrize(
    "scales", [np.array([1.0]), [2.0], np.array([1.5]), np.array([True]), ["3"], np.array([1], dtype=object)]
)
def test_anything_but_integers_is_refused(scales: Any) -> None:
    """Floats are refused, whole or not."""
    with pytest.raises(InvalidType):
        discrete_laplace(scales, noise_stream(SECRET))


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.stem)
def test_the_source_has_no_float_operation(file: Path) -> None:
    """No float literal, no true division and no floating-point function stands where draws are made, nor do moments reach it."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not isinstance(node, ast.Div)
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"float64", "float32", "log", "exp", "sqrt", "random", "default_rng", "log2", "true_divide"}
        if isinstance(node, ast.ImportFrom):
            assert node.module != "release_pipeline.mechanisms.noise.moments" or file.stem == "__init__"


def test_contexts_are_told_apart() -> None:
    """No two different sequences of parts share a key, whatever their types and lengths."""
    contexts = [(), ("",), ("", ""), ("a", "b"), ("ab",), ("a", "b", ""), (1,), ("1",), (b"1",), (-1,), (11,), (1, 1), ("i1",)]
    keys = {noise.derive_key(SECRET, *context) for context in contexts}
    assert len(keys) == len(contexts)


@pytest.mark.parametrize("secret", [b"", b"short", bytes(31), bytes(33), "0" * 32, None])
def test_a_weak_secret_is_refused(secret: Any) -> None:
    """A secret is 32 bytes."""
    with pytest.raises(InvalidArgument, match="32 bytes"):
        noise_stream(secret)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])  # noqa: S301
def test_a_stream_cannot_be_copied(duplicate: Any) -> None:
    """A copy would repeat the noise."""
    with pytest.raises(NoiseError):
        duplicate(noise_stream(SECRET))


def test_a_forked_process_does_not_repeat_its_parents_stream() -> None:
    """The child's use of the parent's stream is refused; the parent goes on undisturbed."""
    stream = noise_stream(SECRET, "fork")
    discrete_laplace([5] * 10, stream)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            discrete_laplace([5] * 10, stream)
            answer = b"drew"
        except NoiseError:
            answer = b"refused"
        os.write(writing, answer)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.read() == b"refused"
    whole = discrete_laplace([5] * 20, noise_stream(SECRET, "fork"))
    assert discrete_laplace([5] * 10, stream).tolist() == whole[10:].tolist()


@given(st.integers(1, 40))
def test_position_mixer_is_one_to_one(bits: int) -> None:
    """mix then unmix is the identity; small domains are permuted completely."""
    mixer = PositionMixer(bits, noise_stream(SECRET, bits))
    positions = np.arange(min(1 << bits, 5000), dtype=np.uint64)
    mixed = mixer.mix(positions.copy())
    assert int(mixed.max()) < 1 << bits
    assert len(np.unique(mixed)) == len(positions)
    assert np.array_equal(mixer.unmix(mixed), positions)


@pytest.mark.parametrize("count", [0, 7, 30_011])
@pytest.mark.parametrize("few", [1, 2_000])
def test_the_first_of_a_shuffle_are_those_of_the_whole_order(count: int, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is looked at together, and the stream goes on at the same place."""
    monkeypatch.setattr(orders, "_SLICE", 1_000)
    whole, first = noise_stream(SECRET, "order"), noise_stream(SECRET, "order")
    assert shuffled_first(count, few, first).tolist() == shuffled_positions(count, whole)[:few].tolist()
    assert first.take_lanes(1) == whole.take_lanes(1)


KNOWN = [1, -3, -42, 396251915577, -1436477100383608, 0]
