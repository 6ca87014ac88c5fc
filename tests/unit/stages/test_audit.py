"""The figures of the audit: by their definitions, by brute force, and the expected error by many real draws."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.model import Gates
from release_pipeline.privacy.noise import noise_stream
from release_pipeline.stages.audit import (
    LINKAGE_SAMPLE,
    Gate,
    column_error,
    judge_gates,
    record_linkage,
    sse_paper,
)
from release_pipeline.stages.mask import mask
from release_pipeline.stages.microaggregate import expect_error, microaggregate

Matrix = npt.NDArray[np.float64]
SECRET = bytes(range(32))
STREAM = noise_stream(SECRET, "test")


def linkage_by_hand(original: Matrix, released: Matrix, own: list[int]) -> float:
    """KDP13: 1/|G| for each released record whose own original is in G, the nearest originals; in per cent."""
    deviation = [math.sqrt(float(np.mean((column - column.mean()) ** 2))) or 1.0 for column in original.T]
    linked = 0.0
    for point, mine in zip(released, own, strict=True):
        distances = [
            math.sqrt(sum(((a - b) / s) ** 2 for a, b, s in zip(one, point, deviation, strict=True))) for one in original
        ]
        nearest = [i for i, distance in enumerate(distances) if distance <= min(distances) * (1 + 1e-9)]
        linked += 1 / len(nearest) if mine in nearest else 0
    return 100 * linked / len(released)


@given(
    st.integers(1, 3).flatmap(lambda m: arrays(np.int64, st.tuples(st.integers(1, 15), st.just(m)), elements=st.integers(0, 3)))
)
def test_record_linkage_agrees_with_brute_force_ties_included(numbers: npt.NDArray[np.int64]) -> None:
    """Few whole numbers, so that many originals are equally near: each counts as 1/|G|."""
    original = numbers.astype(np.float64)
    own = np.arange(len(original))[::-1][: max(1, len(original) - 1)]
    released = np.clip(original[own] + np.where(own % 2, 1.0, 0.0)[:, None], 0, 3)
    percent, tried = record_linkage(original, released, own, stream=STREAM)
    assert tried == len(own)
    assert percent == pytest.approx(linkage_by_hand(original, released, own.tolist()))


def test_record_linkage_of_the_data_themselves() -> None:
    """Distinct records released as they are: all linked; one value for all: 1/n of them."""
    x = np.arange(40, dtype=np.float64).reshape(-1, 2)
    assert record_linkage(x, x, np.arange(20), stream=STREAM) == (100.0, 20)
    constant = np.ones((20, 2))
    assert record_linkage(constant, constant, np.arange(20), stream=STREAM)[0] == pytest.approx(5.0)


def test_record_linkage_tries_a_sample_of_many_records() -> None:
    """Of more records 2,000 are tried, and their share stands for all."""
    x = np.arange(5_000, dtype=np.float64)[:, None]
    released = np.where(x % 2 == 0, x, 9_999.0)
    percent, tried = record_linkage(x, released, np.arange(5_000), stream=STREAM)
    assert tried == LINKAGE_SAMPLE == 2_000
    assert percent == pytest.approx(50, abs=5)


@given(
    st.tuples(st.integers(2, 12), st.integers(1, 4)).flatmap(
        lambda shape: st.tuples(*[arrays(np.float64, shape, elements=st.integers(-50, 50).map(float))] * 2)
    )
)
def test_sse_paper_literally(pair: tuple[Matrix, Matrix]) -> None:
    """Mean over the records of (1/m^2) sum over the columns of ((x - y) / variance)^2; constant columns add nothing."""
    x, y = pair
    m = x.shape[1]
    variances = [sum((a - sum(column) / len(x)) ** 2 for a in column) / len(x) for column in x.T.tolist()]
    total = 0.0
    for own, other in zip(x.tolist(), y.tolist(), strict=True):
        total += sum(((a - b) / v) ** 2 for a, b, v in zip(own, other, variances, strict=True) if v > 0) / m**2
    assert sse_paper(x, y) == pytest.approx(total / len(x))


def test_column_error_is_relative_to_the_variance() -> None:
    """0 for the data themselves, 1 for their mean, 0 for a constant column."""
    x = np.array([1.0, 2.0, 3.0, 10.0])
    assert column_error(x, x) == 0
    assert column_error(x, np.full(4, x.mean())) == pytest.approx(1)
    assert column_error(x, x + 2) == pytest.approx(4 / np.var(x))
    assert column_error(np.ones(3), np.zeros(3)) == 0


def test_gates_pass_up_to_their_limit_and_fail_without_a_figure() -> None:
    """At the limit: passed; above it, NaN, or a column without a figure: failed. The words name value and limit."""
    limits = Gates(
        expected_error=dict.fromkeys("abcd", Decimal("0.5")), relative_error={"a": Decimal("0.1"), "b": Decimal("0.1")}
    )
    figures = {
        "a": {"error": 0.5, "relative_error": 0.1},
        "b": {"error": 0.500001, "relative_error": None},
        "c": {"error": math.nan},
    }
    gates = judge_gates(figures, limits)
    assert [(gate.name, gate.passed) for gate in gates] == [
        ("expected error of a", True),
        ("expected error of b", False),
        ("expected error of c", False),
        ("expected error of d", False),
        ("expected relative error of a", True),
        ("expected relative error of b", False),
    ]
    assert Gate("g", math.inf, 1.0).passed is False
    assert judge_gates({"a": {"error": 9.0}}, Gates()) == []


def policy_of(protect: str) -> Policy:
    """A policy with one noise column under this method."""
    return parse_policy(
        "policy: people\nsteward: ana\npopulation: people\nsource: {path: people.csv}\nreleases: once\nperson: each-row\n"
        f"protect: {protect}\n"
        "columns:\n  income: {role: confidential, do: noise, domain: [0, 1000], grid: 1, outside: clamp, why: known}\n",
        name="p.yaml",
    )


@pytest.mark.statistical
@pytest.mark.parametrize(
    "protect",
    [
        "{method: idp-cbls, epsilon: 1, k: 5}",
        "{method: idp-ls, epsilon: 1, k: 5}",
        "{method: dp-um, epsilon: 0.5, k: 10}",
        "{method: dp-um, epsilon: 5, k: 10, consistency: none}",
        "{method: laplace, epsilon: 5}",
        "{method: idp-cbls, epsilon: 1, k: 5, scope: centroid}",
    ],
)
def test_expected_error_is_the_mean_of_many_real_releases(protect: str) -> None:
    """Consistency, clamping and trimming included: within 15% of the mean error over 300 real draws; and repeatable."""
    policy = policy_of(protect)
    numbers = np.round(np.clip(np.random.default_rng(3).gamma(2, 120, 400), 0, 1000))
    exact = microaggregate(policy, "income", numbers, secret=SECRET, context=("x",))
    expected = expect_error(exact, numbers, secret=SECRET, context=("x", "income"))
    secrets = [number.to_bytes(32, "big") for number in range(300)]
    real = [column_error(numbers, mask(exact, secret=secret, context=("x", "income"))) for secret in secrets]
    assert expected == pytest.approx(np.mean(real), rel=0.15)
    assert expected == expect_error(exact, numbers, secret=SECRET, context=("x", "income"))


def test_expected_error_does_not_look_at_the_noise_that_is_released() -> None:
    """The release's own draw is not among the simulated ones, so a gate on the figure does not condition the noise."""
    policy = policy_of("{method: dp-um, epsilon: 0.5, k: 10}")
    numbers = np.arange(0, 1000, 10, dtype=np.float64)
    exact = microaggregate(policy, "income", numbers, secret=SECRET, context=("x",))
    own = column_error(numbers, mask(exact, secret=SECRET, context=("x", "income")))
    assert expect_error(exact, numbers, secret=SECRET, context=("x", "income")) != own
    assert expect_error(exact, np.full(100, 5.0), secret=SECRET, context=("x", "income")) == 0.0
