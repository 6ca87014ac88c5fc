"""OLA against full enumeration: levels, suppressed records, classes and loss, on random problems."""

from __future__ import annotations

import random
from typing import Any, cast, get_args

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms.clusters import lattice
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from release_pipeline.mechanisms.clusters.lattice import Metric, search_lattice
from tests.oracles import full_enumeration as plain

METRICS = get_args(Metric)
Problem = tuple[list[list[str]], list[dict[str, list[str]]]]  # rows; per column, each value's labels


def random_hierarchy(chance: random.Random, values: int, levels: int) -> dict[str, list[str]]:
    """A monotone hierarchy: on every level, groups of the level below are thrown together. The top need not be one label."""
    labels = [[f"v{value}"] for value in range(values)]
    group = list(range(values))
    for level in range(1, levels):
        into = {old: chance.randrange(max(1, len(set(group)) // 2 + 1)) for old in sorted(set(group))}
        group = [into[old] for old in group]
        for value in range(values):
            labels[value].append(f"{level}:{group[value]}")
    order = list(range(values))
    chance.shuffle(order)
    return {labels[value][0]: labels[value] for value in order}


def random_problem(chance: random.Random) -> Problem:
    hierarchies = [random_hierarchy(chance, chance.randint(1, 5), chance.randint(1, 4)) for _ in range(chance.randint(1, 4))]
    n = chance.randint(1, 40)
    rows = [[chance.choice(list(hierarchy)) for hierarchy in hierarchies] for _ in range(n)]
    return rows, hierarchies


def run(problem: Problem, k: int, allowed: int, metric: str) -> lattice.Generalisation:
    rows, labels = problem
    hierarchies = [Hierarchy.of(list(of_values.values())) for of_values in labels]
    codes = [hierarchy.encode(column) for hierarchy, column in zip(hierarchies, zip(*rows, strict=True), strict=True)]
    return search_lattice(np.column_stack(codes), hierarchies, k, allowed, cast(Metric, metric))


def same_partition(one: list[Any], other: list[Any]) -> bool:
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


def assert_equal(found: lattice.Generalisation, wanted: plain.Node, metric: str) -> None:
    assert found.levels == wanted.levels
    assert found.loss == pytest.approx(plain.bits(wanted.loss) if metric == "entropy" else float(wanted.loss), abs=1e-4)
    assert (found.group < 0).tolist() == wanted.suppressed
    kept = [(a, b) for a, b, gone in zip(found.group.tolist(), wanted.classes, wanted.suppressed, strict=True) if not gone]
    if kept:
        assert same_partition(*(list(side) for side in zip(*kept, strict=True)))
        assert {group for group, _ in kept} == set(range(max(group for group, _ in kept) + 1))


@pytest.mark.parametrize("seed", [*range(40), 110])
def test_random_problems_equal_enumeration(seed: int) -> None:
    """Every metric, with and without suppression."""
    chance = random.Random(seed)  # noqa: S311
    problem = random_problem(chance)
    n = len(problem[0])
    k = chance.choice([1, 2, 2, 3, 5])
    for metric in METRICS:
        every = list(plain.nodes(*problem, k, metric))
        assert len(every) == np.prod([len(next(iter(h.values()))) for h in problem[1]])
        for allowed in (0, chance.randint(0, n), int(chance.choice([0.05, 0.1, 0.3]) * n)):
            wanted = plain.best(iter(every), allowed)
            if wanted is None:
                with pytest.raises(InvalidArgument, match="no generalisation is possible"):
                    run(problem, k, allowed, metric)
                continue
            found = run(problem, k, allowed, metric)
            assert_equal(found, wanted, metric)


@pytest.mark.parametrize(("allowed", "levels"), [(1, (1,)), (2, (0,))])
def test_the_budget_is_exact(allowed: int, levels: tuple[int, ...]) -> None:
    """Two of five records are alone: 2 is enough and 1 is not."""
    rows = [["a"], ["a"], ["a"], ["b"], ["c"]]
    found = run((rows, [{value: [value, "*"] for value in "abc"}]), 2, allowed, "entropy")
    assert found.levels == levels
    assert np.count_nonzero(found.group < 0) == (2 if levels == (0,) else 0)


HIERARCHY = Hierarchy.of([("a", "*"), ("b", "*")])
CODES = np.array([[0], [0], [1]])


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"k": 0}, InvalidArgument, "k is below 1"),
        ({"k": True}, InvalidType, "k must be a whole number"),
        ({"metric": "aecs"}, InvalidArgument, "no such metric"),
        ({"codes": CODES.astype(float)}, InvalidType, "int64"),
        ({"codes": CODES - 1}, InvalidArgument, "does not know"),
        ({"codes": CODES[:0]}, InvalidArgument, "no records"),
        ({"hierarchies": [HIERARCHY] * 2}, InvalidArgument, "1 columns and 2 hierarchies"),
        ({"codes": np.zeros((3, 25), dtype=np.int64), "hierarchies": [HIERARCHY] * 25}, InvalidArgument, "33,554,432 nodes"),
        ({"k": 4}, InvalidArgument, "no generalisation is possible"),
    ],
)
def test_refusals(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"codes": CODES, "hierarchies": [HIERARCHY], "k": 2, **changed}
    with pytest.raises(error, match=words):
        search_lattice(**arguments)
