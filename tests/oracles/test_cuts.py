"""Mondrian against its definition in plain Python, and what must hold of its classes whatever the cuts were."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import mondrian
from release_pipeline.mechanisms.clusters.cuts import cut_classes
from release_pipeline.mechanisms.clusters.hierarchy import Hierarchy
from tests.oracles import plain_cuts as plain
from tests.oracles.test_lattice import random_hierarchy

KINDS = ("small", "wide", "floats", "extremes", "subnormal", "mixed")


def tree(chance: random.Random) -> Hierarchy:
    labels = random_hierarchy(chance, chance.randint(1, 9), chance.randint(1, 4))
    return Hierarchy.of([[*row, "*"] for row in labels.values()])


def in_tree_order(hierarchy: Hierarchy) -> list[list[int]]:
    """The labels numbered in the order of a walk through the tree, so that classes can be compared with their numbers."""
    values = sorted(range(len(hierarchy.values)), key=lambda v: hierarchy.codes[::-1, v].tolist())
    tables: list[list[int]] = []
    for level in hierarchy.codes.tolist():
        number = {label: place for place, label in enumerate(dict.fromkeys(level[v] for v in values))}
        tables.append([number[label] for label in level])
    return tables


def random_matrix(chance: random.Random, kind: str, n: int) -> tuple[npt.NDArray[Any], dict[int, Hierarchy]]:
    draw = {
        "small": lambda: chance.randint(0, 4),
        "wide": lambda: chance.choice([-(2**63), 2**63 - 1, 0, 1, -1, 2**62, 2**62 + 1, chance.randint(-(2**63), 2**63 - 1)]),
        "floats": lambda: chance.choice([0.1, 0.2, 0.30000000000000004, 0.3, -0.0, 0.0, chance.uniform(-9, 9), 2.5]),
        "extremes": lambda: chance.choice([1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -5e-324, 1e-300, 1.0, 0.0]),
        "subnormal": lambda: chance.randint(-5, 5) * 5e-324,
        "mixed": lambda: chance.randint(0, 9) / 4,
    }[kind]
    m = chance.randint(1, 4)
    columns: list[list[Any]] = [[draw() for _ in range(n)] for _ in range(m)]
    hierarchies: dict[int, Hierarchy] = {}
    if kind in ("small", "mixed"):
        for place in range(m):
            if chance.random() < 0.5:
                hierarchies[place] = tree(chance)
                columns[place] = [chance.randrange(len(hierarchies[place].values)) for _ in range(n)]
    return np.array(columns, dtype=np.int64 if kind in ("small", "wide") else np.float64).T, hierarchies


def as_fractions(matrix: npt.NDArray[Any]) -> list[list[Fraction]]:
    return [[Fraction(entry) for entry in row] for row in matrix.tolist()]


LETTERS = Hierarchy.of([["a", "*"], ["b", "*"]])


def partition(label: npt.NDArray[np.int64]) -> list[list[int]]:
    return [np.flatnonzero(label == number).tolist() for number in range(int(label.max()) + 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_cuts_are_those_of_the_definition(kind: str) -> None:
    """Same classes, in the same order, and the same levels; every class allowable, and none can be cut any further."""
    cut = 0
    for seed in range(60):
        chance = random.Random(f"{kind} {seed}")  # noqa: S311
        k, n = chance.randint(1, 4), chance.randint(4, 40)
        matrix, hierarchies = random_matrix(chance, kind, n)
        tables = {place: in_tree_order(hierarchy) for place, hierarchy in hierarchies.items()}
        exact = as_fractions(matrix)
        found = cut_classes(matrix, k, hierarchies=hierarchies)
        rows_of = partition(found.label)
        assert rows_of == plain.classes(exact, k, tables)
        assert found.level.shape == (len(rows_of), matrix.shape[1])
        for rows, levels in zip(rows_of, found.level.tolist(), strict=True):
            assert plain.allowable(rows, k)
            assert not plain.can_be_cut(exact, rows, k, tables)
            wanted = [
                plain.level_of(exact, rows, tables[place], place) if place in tables else -1 for place in range(len(levels))
            ]
            assert levels == wanted
        cut += len(rows_of) > 1
    assert cut > 15


def test_shares_are_compared_beyond_floats() -> None:
    """Two shares that are one in floats, (2^62 - 1) / 2^62 and (2^62 - 2) / 2^62: the larger decides, in whichever column."""
    w = 2**62
    for swap in (False, True):
        # cut in the third column first (its share is 1), then the shares differ in the last bit only
        matrix = np.array(
            [[0, 0, 0], [0, w - 1, 0], [w - 2, 0, 0], [w - 2, w - 1, 0], [0, 0, 5], [w, w, 5], [0, w, 5], [w, 0, 5]]
        )
        if swap:
            matrix = matrix[:, [1, 0, 2]]
        matrix = matrix[:, [2, 0, 1]]
        label = mondrian(matrix, 2)
        exact = as_fractions(matrix)
        assert partition(label) == plain.classes(exact, 2, {})
        assert label[0] == label[2]


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"k": 0}, InvalidArgument, "k is below 1"),
        ({"matrix": [1, 2, 3, 4]}, InvalidArgument, "two dimensions"),
        ({"matrix": np.zeros((0, 2))}, InvalidArgument, "0 records"),
        ({"matrix": [[1.0], [np.nan], [np.inf], [-np.inf]]}, InvalidArgument, "holds 3 missing or infinite"),
        ({"matrix": np.ma.masked_array([[1], [2]])}, InvalidType, "masked"),
        ({"matrix": np.array([[2**63], [0]], dtype=np.uint64)}, InvalidArgument, "beyond 64-bit"),
        ({"hierarchies": {-1: Hierarchy.of([["a", "*"]])}}, InvalidArgument, "hierarchy for column -1"),
        ({"hierarchies": {0: LETTERS}}, InvalidArgument, "does not know"),
        (
            {"matrix": [[0.5], [0], [1], [1]], "hierarchies": {0: LETTERS}},
            InvalidArgument,
            "does not know",
        ),
    ],
)
def test_refusals(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"matrix": [[1], [2], [3], [4]], "k": 1, **changed}
    with pytest.raises(error, match=words):
        cut_classes(**arguments)
