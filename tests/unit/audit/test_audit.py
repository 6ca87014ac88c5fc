"""The figures of the audit: by their definitions, by brute force, and the expected error by many real draws."""

from __future__ import annotations

import math
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.audit.gates import ALONE, Gate, Groups, judge_gates, judge_groups
from release_pipeline.masking.centroids import mask
from release_pipeline.masking.microaggregate import ROUNDS, Deviations, ExpectedError, expect_column, expect_ranks, microaggregate
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import column_error
from release_pipeline.mechanisms.columns.methods import Statistics, add_noise, simulate_noise
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.sections import Gates

SECRET = bytes(range(32))
Numbers = npt.NDArray[np.float64]


def expect_error(exact: Statistics, numbers: Numbers, *, clamp: bool = True) -> ExpectedError:
    """By simulated releases, from the tally of the column; it is that of the records one by one."""
    how: Any = {"secret": SECRET, "context": ("x", "income"), "clamp": clamp}
    seen = exact.grid.snap(numbers)
    column, records = Tally.of(seen), Deviations.of_records(seen, exact.cluster, exact.size)
    one_by_one, shape = expect_column(exact, column, records, **how)
    if exact.are_records:
        return one_by_one
    found, same = expect_column(exact, column, Deviations.of_ranks(column, exact.size), **how)
    assert same == shape
    assert one_by_one == found or asdict(one_by_one) == pytest.approx(asdict(found), rel=1e-9)
    return found


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


def test_gates_on_groups_pass_on_their_side_of_the_limit() -> None:
    """A least k and l: at the limit passed, beyond it not; and none passes where there are no groups."""
    groups = Groups(4, 5, 10.0, 20, ((5, 20, 4),), {"ill": 2}, prosecutor=0.2)

    def judged(**limits: object) -> list[bool]:
        found = judge_groups(groups, Gates(**limits))  # type: ignore[arg-type]
        assert all(gate.basis == ALONE for gate in found)
        assert not any(gate.passed for gate in judge_groups(None, Gates(**limits)))  # type: ignore[arg-type]
        return [gate.passed for gate in found]

    assert judged(anonymity_k=5, l_diversity={"ill": 2}) == [True, True]
    assert judged(anonymity_k=6, l_diversity={"ill": 3}) == [False, False]
    [gate] = judge_groups(groups, Gates(anonymity_k=6))
    assert gate.refusal == "a limit on the groups of the released table is not met (which one, and the figure, are in the vault)."


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
        "{method: dp-um, epsilon: 0.5, k: 10}",
        "{method: laplace, epsilon: 5}",
        "{method: idp-cbls, epsilon: 1, k: 5, scope: centroid}",
    ],
)
def test_expected_error_is_the_mean_of_many_real_releases(protect: str) -> None:
    """Consistency, clamping and trimming included: the mean error over 300 real draws, within four standard errors; nearly all of
    them in the range, and not if they were thirty times as large; and repeatable."""
    policy = policy_of(protect)
    numbers = np.round(np.clip(np.random.default_rng(3).gamma(2, 120, 400), 0, 1000))
    exact = microaggregate(policy, "income", numbers, secret=SECRET, context=("x",))
    clamp = policy.clamps
    expected = expect_error(exact, numbers, clamp=clamp)
    secrets = [number.to_bytes(32, "big") for number in range(300)]
    real = [column_error(numbers, mask(exact, secret=secret, context=("x", "income"), clamp=clamp)) for secret in secrets]
    tolerance = 4 * float(np.std(real) / np.mean(real)) * math.sqrt(1 / ROUNDS + 1 / len(real))
    assert tolerance < 0.65  # noise 30% too large makes the error 69% larger
    assert expected.mean == pytest.approx(np.mean(real), rel=tolerance)
    assert expected.low is not None
    assert expected.high is not None
    assert np.mean([expected.low <= error <= expected.high for error in real]) > 0.95
    assert np.mean([expected.low <= 30 * error <= expected.high for error in real]) < 0.95
    assert expected == expect_error(exact, numbers, clamp=clamp)
    if not clamp:  # the power of the test: the error that forgets the option is another one
        assert expect_error(exact, numbers).mean < 0.8 * expected.mean


@pytest.mark.parametrize("k", [5, 50])
@pytest.mark.parametrize("method", ["idp-cbls", "dp-um"])
def test_expected_error_is_of_the_values_that_the_method_saw(method: str, k: int) -> None:
    """A few records far outside the domain have nearly all of the variance. Against the values as they came the error is near 1
    whatever the method does; of the method it is what it is for the same values clamped, off the grid or on it."""
    policy = policy_of(f"{{method: {method}, epsilon: 20, k: {k}}}")
    numbers = np.random.default_rng(3).gamma(2, 120, 4000)
    numbers[:20] = 1e7
    exact = microaggregate(policy, "income", numbers, secret=SECRET, context=("x",))
    expected = expect_error(exact, numbers)
    assert expected.mean < 0.05
    assert expected == expect_error(exact, np.clip(numbers, 0, 1000))
    assert expected == expect_error(exact, np.round(np.clip(numbers, 0, 1000)))
    released = mask(exact, secret=SECRET, context=("x", "income"))
    assert column_error(numbers, released) > 0.99
    assert expected.low is not None
    assert expected.high is not None
    assert expected.low <= column_error(exact.grid.snap(numbers), released) <= expected.high


ENTRIES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=60)


@given(ENTRIES, st.integers(1, 9))
def test_an_error_by_ranks_is_that_of_the_records_with_a_value(pairs: list[tuple[int, int]], k: int) -> None:
    """One by one: points above 9 stand for no value, before and after; k ranks are given the same."""
    before, after = (np.sort(np.array(side, dtype=np.float64)) for side in zip(*pairs, strict=True))
    after = after[np.arange(len(after)) // k * k]
    both, valued = (before <= 9) & (after <= 9), before[before <= 9]
    found = expect_ranks(Tally.of(before), [Tally.of(after)], 9.0)
    if not len(valued) or np.var(valued) == 0:
        assert found == ExpectedError(0.0, None, None)
    else:
        error = np.mean((before - after)[both] ** 2) / np.var(valued) if both.any() else 1.0
        assert found.mean == pytest.approx(error)


def test_expected_error_does_not_look_at_the_noise_that_is_released() -> None:
    """The release's own draw is not among the simulated ones, so a gate on the figure does not condition the noise."""
    policy = policy_of("{method: dp-um, epsilon: 0.5, k: 10}")
    numbers = np.arange(0, 1000, 10, dtype=np.float64)
    exact = microaggregate(policy, "income", numbers, secret=SECRET, context=("x",))
    released = mask(exact, secret=SECRET, context=("x", "income"))
    own = column_error(numbers, released)
    assert expect_error(exact, numbers).mean != own
    assert expect_error(exact, np.full(100, 5.0)) == ExpectedError(0.0, None, None)
    simulated = [values.tolist() for values in simulate_noise(exact, ROUNDS, secret=SECRET, context=("x", "income"))]
    assert add_noise(exact, secret=SECRET, context=("x", "income")).tolist() not in simulated
    assert len({tuple(values) for values in simulated}) == ROUNDS
