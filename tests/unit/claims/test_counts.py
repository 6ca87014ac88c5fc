"""What is seen of noisy counts, against sums by hand; and the tables that are hostile to them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from release_pipeline.claims.counts import show_counts
from release_pipeline.claims.moves import list_moves
from release_pipeline.claims.suite import list_suite
from release_pipeline.claims.tables import make_pairs
from release_pipeline.claims.trials import Counted, count_both
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.families.by_value import ByValueFamily
from release_pipeline.policy.options import ByValueOptions
from release_pipeline.policy.plan import check_rows
from release_pipeline.privacy.by_value import GaussianNoise, LaplaceNoise, Noise, Stage
from release_pipeline.privacy.by_value.mechanism import next_stage
from release_pipeline.privacy.clusters import count_ordered

SUITE = {name: policy for name, policy in list_suite().items() if policy.method.family == "by-value"}
ONE, OTHER = np.array([0, 0, 7]), np.array([5, 0, 7])
EDGES = np.array([0, 1, 4, 10])  # counts of 2, 0, 1 and of 1, 0, 2
FINER = np.array([0, 1, 2, 4, 10])  # 2, 0, 0, 1 and 1, 0, 0, 2


def show(*stages: Stage) -> dict[str, Any]:
    """What one draw shows of these stages of a column."""
    shown = show_counts([{"a": Counted([stages], [np.arange(3)])}], {"a": ONE}, {"a": OTHER})
    return {view: figure[0] for view, figure in shown.items()}


@pytest.mark.parametrize(
    ("noise", "first", "second"),
    [
        (LaplaceNoise(2), (1 - 0 + 4 - 3) / 2, (2 - 3 + 3 - 4) / 2),
        (GaussianNoise(Fraction(5, 2)), (1 - 0 + 16 - 9) / 5, (4 - 9 + 9 - 16) / 5),
    ],
)
def test_log_ratios_are_those_of_the_law(noise: Noise, first: float, second: float) -> None:
    """The nats by which counts of 1, -1, 5 and of 4, 3, 0, -2 are likelier of the other table, by hand."""
    shown = show(Stage(EDGES, np.array([1, -1, 5]), noise), Stage(FINER, np.array([4, 3, 0, -2]), noise))
    assert shown["likelihood ratio of stage 1"] == pytest.approx(first)
    assert shown["likelihood ratio of stage 2"] == pytest.approx(second)
    assert shown["likelihood ratio of all counts"] == pytest.approx(first + second)


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


def test_the_parts_of_a_draw_have_their_own_records() -> None:
    """The first record is in the second part: counts of the first one tell nothing, and those of the second what they would tell
    of a table of its own."""
    stage = Stage(EDGES, np.array([1, 0, 0]), LaplaceNoise(2))
    rows = [np.array([1, 2]), np.array([0])]
    both, second = (
        show_counts([{"a": Counted([[stage]] * len(own), own)}], {"a": ONE}, {"a": OTHER})["likelihood ratio of all counts"]
        for own in (rows, rows[1:])
    )
    assert both == second == [-1]  # (0 - 1 + 0 - 1) / 2


def test_other_cells_are_other_numbers() -> None:
    """Cells that differ in one edge, and a stage more."""
    noise = LaplaceNoise(1)
    shown = [
        show(*(Stage(np.array(edges), np.zeros(len(edges) - 1, dtype=np.int64), noise) for edges in stages))
        for stages in ([[0, 5, 10]], [[0, 6, 10]], [[0, 5, 10], [0, 5, 10]])
    ]
    assert len({one["which cells were counted"] for one in shown}) == 3
    assert len({one["how many cells were counted"] for one in shown}) == 2


@pytest.mark.parametrize("name", SUITE)
def test_draws_are_the_counts_of_all_columns_and_parts(name: str) -> None:
    """Every record is in one part, and counts without their noise would be those of the part."""
    policy = SUITE[name]
    pair = make_pairs(policy, list(policy.noise_columns))[0]
    for seen in count_both(policy, pair.one, pair.other, draws=2, purpose="test"):
        for counted in seen:
            assert list(counted) == list(policy.noise_columns)
            for column in counted.values():
                assert sorted(np.concatenate(column.rows).tolist()) == list(range(pair.one.num_rows))
                assert len(column.stages) == len(column.rows) == policy.parts
                assert all(len(stages) in (2, 3) for stages in column.stages)
                assert all((np.diff(stage.edges) > 0).all() for stages in column.stages for stage in stages)


def _policy(column: str, protect: str = "epsilon: 2") -> Policy:
    return parse_policy(
        "policy: made-up\nsteward: nobody\npopulation: nobody\nsource: {path: none.csv}\nperson: each-row\nreleases: once\n"
        f"protect: {{method: dp-cdf, {protect}}}\ncolumns:\n"
        f"  a: {{role: confidential, do: noise, grid: 1, outside: clamp, why: made up, {column}}}\n",
        name="made-up",
    )


@pytest.mark.parametrize(
    "policy",
    [
        *SUITE.values(),
        _policy("domain: [0, 1]"),
        _policy("domain: [0, 1], atoms: [0, 1]"),
        _policy("domain: [-50, 90], atoms: [-50, 90]"),
        _policy("domain: [0, 1000000000]", "epsilon: 0.01"),
    ],
)
def test_moves_are_of_one_person_from_cell_to_cell(policy: Policy) -> None:
    """Tables as long as a release may be, within the domain; those of one person become one number, and not what all of them
    were. In the smallest domain, too."""
    for moves in list_moves(policy):
        for name, move in moves.items():
            width = policy.noise_columns[name].coded_grid.width
            check_rows(policy, len(move.units))
            assert len({len(move.units) for move in moves.values()}) == 1
            assert move.units.min() >= 0
            assert max(move.to, move.units.max()) <= width
            assert (move.units[: policy.records_per_person] != move.to).all()


@pytest.mark.parametrize("name", ["dp-cdf", "dp-cdf, two records per person"])
def test_one_move_would_change_cells_that_true_counts_had(name: str) -> None:
    """The cells that the second stage has without noise are others before and after."""
    policy = SUITE[name]
    move = list(list_moves(policy))[-1]["a"]
    after = move.units.copy()
    after[: policy.records_per_person] = move.to
    assert "true counts" in move.words
    assert _cells(policy, move.units) != _cells(policy, after)


def _cells(policy: Policy, units: Any) -> list[int]:
    declared = ByValueFamily(ByValueOptions).declare(policy, "a")
    facts = declared.facts(len(units))
    first = next_stage([], facts, declared.budget)
    assert first is not None
    edges, noise = first
    second = next_stage([Stage(edges, count_ordered(np.sort(units), edges), noise)], facts, declared.budget)
    assert second is not None
    return second[0].tolist()
