"""What is seen of noisy counts, against sums by hand; and the tables that are hostile to them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from experiments.claims import list_suite
from release_pipeline.claims.tables import make_pairs
from release_pipeline.claims.trials import Counted, count_both
from release_pipeline.claims.views import show_counts
from release_pipeline.mechanisms.by_value import GaussianNoise, LaplaceNoise, Noise, Stage

SUITE = {name: policy for name, policy in list_suite().items() if policy.method.family == "by-value"}
ONE, OTHER = np.array([0, 0, 7]), np.array([5, 0, 7])
EDGES = np.array([0, 1, 4, 10])  # counts of 2, 0, 1 and of 1, 0, 2
FINER = np.array([0, 1, 2, 4, 10])  # 2, 0, 0, 1 and 1, 0, 0, 2


def show(*stages: Stage) -> dict[str, Any]:
    """What one draw shows of these stages of a column."""
    shown = show_counts([{"a": Counted([stages], [np.arange(3)])}], {"a": ONE}, {"a": OTHER})
    return {view: figure[0] for view, figure in shown.items()}


@pytest.mark.parametrize(("exact", "sign"), [(((2, 0, 1), (2, 0, 0, 1)), -1), (((1, 0, 2), (1, 0, 0, 2)), 1)])
@pytest.mark.parametrize("noise", [LaplaceNoise(3), GaussianNoise(Fraction(5, 2))])
def test_noise_that_is_drawn_twice_shows_the_table(noise: Noise, exact: tuple[Any, Any], sign: int) -> None:
    """The third lane has other cells in the two stages, and the tables differ in one of them alone: by one count, in scales of
    the noise, lists with the same noise are nearer to each other if they are of the table that was counted."""
    drawn = np.array([2, -5, 4, 1])
    stages = [
        Stage(edges, np.array(counts) + drawn[: len(counts)], noise) for edges, counts in zip((EDGES, FINER), exact, strict=True)
    ]
    assert show(*stages)["the same noise in stages 1 and 2"] == pytest.approx(sign / noise.spread)


@pytest.mark.parametrize("name", SUITE)
def test_draws_are_the_counts_of_all_columns_and_parts(name: str) -> None:
    """Every record is in one part, and counts without their noise would be those of the part."""
    policy = SUITE[name]
    pair = make_pairs(policy, list(policy.noise_columns))[0]
    for seen in count_both(policy, pair.first, pair.second, draws=2, purpose="test"):
        for counted in seen:
            assert list(counted) == list(policy.noise_columns)
            for column in counted.values():
                assert sorted(np.concatenate(column.rows).tolist()) == list(range(pair.first.num_rows))
                assert len(column.stages) == len(column.rows) == policy.parts
                assert all(len(stages) in (2, 3) for stages in column.stages)
                assert all((np.diff(stage.edges) > 0).all() for stages in column.stages for stage in stages)
