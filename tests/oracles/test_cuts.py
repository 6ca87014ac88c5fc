"""Mondrian against its definition in plain Python, and what must hold of its classes whatever the cuts were."""

from __future__ import annotations

import random
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycanon import anonymity

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy import cut_kernel, mondrian
from release_pipeline.privacy.cuts import cut_classes
from release_pipeline.privacy.hierarchy import Hierarchy
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


@given(st.integers(0, 10**6), st.sampled_from(KINDS))
def test_the_order_of_records_does_not_matter(seed: int, kind: str) -> None:
    """The same records in another order are in the same classes, with the same numbers."""
    chance = random.Random(seed)  # noqa: S311
    n = chance.randint(5, 60)
    matrix, hierarchies = random_matrix(chance, kind, n)
    order = np.array(chance.sample(range(n), n))
    label = mondrian(matrix, 2, hierarchies=hierarchies)
    assert mondrian(matrix[order], 2, hierarchies=hierarchies).tolist() == label[order].tolist()


@pytest.mark.parametrize(("n", "classes"), [(5, 1), (9, 1), (10, 2), (14, 2), (15, 2), (20, 4)])
def test_how_many_classes_a_line_gives(n: int, classes: int) -> None:
    """k = 5 on different values: n = k and 2k - 1 cannot be cut, 2k can; halving 15 leaves 7 and 8."""
    label = mondrian(np.arange(n)[:, np.newaxis], 5)
    assert int(label.max()) + 1 == classes
    assert all(a <= b for a, b in pairwise(label.tolist()))


def test_fewer_records_than_k() -> None:
    with pytest.raises(InvalidArgument, match="4 records cannot fill one class of 5"):
        mondrian(np.arange(4)[:, np.newaxis], 5)


def test_ties_are_never_torn() -> None:
    """Equal rows share a class, and a value is on one side of a cut: 1 1 1 1 2 with k = 2 cannot be cut."""
    assert mondrian([[1], [1], [1], [1], [2]], 2).tolist() == [0] * 5
    assert mondrian([[1], [1], [2], [2], [2], [2]], 2).tolist() == [0, 0, 1, 1, 1, 1]
    assert mondrian([[7, 7]] * 50, 2).tolist() == [0] * 50
    assert mondrian([[0], [1], [1], [2], [3]], 1).tolist() == [0, 1, 1, 2, 3]


def test_of_two_cuts_as_near_the_lower_one_is_made() -> None:
    """Six values with cuts after two and after four."""
    assert mondrian([[1], [1], [2], [2], [3], [3]], 2).tolist() == [0, 0, 1, 1, 2, 2]
    assert mondrian([[1], [1], [2], [2], [3], [3]], 3).tolist() == [0] * 6
    assert mondrian([[1], [1], [1], [2], [2], [3], [3], [3]], 3).tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_the_widest_column_comes_first_and_the_first_of_equals() -> None:
    square = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert mondrian(square, 2).tolist() == [0, 0, 1, 1]
    assert mondrian(np.array(square) * [1, 1000], 2).tolist() == [0, 0, 1, 1]
    third = [[0, 0.0], [0, 0.3], [1, 0.0], [1, 0.3]]
    assert mondrian(third, 2).tolist() == [0, 0, 1, 1]


def test_the_next_column_is_tried() -> None:
    """The widest column has one outlier and no allowable cut."""
    assert mondrian([[0, 0], [0, 0], [0, 1], [9, 1]], 2).tolist() == [0, 0, 1, 1]


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


def test_negative_zero_is_zero() -> None:
    assert mondrian([[-0.0], [0.0], [-0.0], [0.0]], 1).tolist() == [0] * 4
    assert mondrian([[-0.0, 0.5], [0.0, 0.5], [1.5, 0.5], [-1.5, 0.5]], 1).tolist() == [1, 1, 2, 0]


@pytest.mark.parametrize("shape", [(400, 40), (60, 300)])
def test_wide_tables(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 3, shape)
    exact = as_fractions(matrix)
    label = mondrian(matrix, 20)
    assert partition(label) == plain.classes(exact, 20, {})


def test_a_hierarchy_is_cut_down_to_where_its_labels_part() -> None:
    """All records are under one label for two levels: the cut is made below them, into three parts at once."""
    animals = Hierarchy.of(
        [
            ("cat", "mammal", "animal", "*"),
            ("dog", "mammal", "animal", "*"),
            ("bat", "mammal", "animal", "*"),
            ("fern", "plant", "plant", "*"),
        ]
    )
    found = cut_classes([[0], [1], [2], [0], [1], [2]], 2, hierarchies={0: animals})
    assert found.label.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.level.tolist() == [[0], [0], [0]]
    assert cut_classes([[0], [1], [2], [0], [1], [0]], 2, hierarchies={0: animals}).level.tolist() == [[1]]


def test_two_calls_share_nothing() -> None:
    """A peer (crowds) returned the first table on every later call."""
    one, other = np.array([[1], [2], [8], [9]]), np.array([[8], [1], [9], [2]])
    assert mondrian(one, 2).tolist() == mondrian(one, 2).tolist() == [0, 0, 1, 1]
    assert mondrian(other, 2).tolist() == [1, 0, 1, 0]
    assert one.tolist() == [[1], [2], [8], [9]]


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"k": 0}, InvalidArgument, "k is below 1"),
        ({"k": 1.5}, InvalidType, "k must be a whole number"),
        ({"matrix": [1, 2, 3, 4]}, InvalidArgument, "two dimensions"),
        ({"matrix": np.zeros((4, 0))}, InvalidArgument, "at least one column"),
        ({"matrix": np.zeros((0, 2))}, InvalidArgument, "0 records"),
        ({"matrix": [["a"], ["b"]]}, InvalidType, "integers or float64"),
        ({"matrix": [[1 + 2j]]}, InvalidType, "integers or float64"),
        ({"matrix": [[1.0], [np.nan], [np.inf], [-np.inf]]}, InvalidArgument, "holds 3 missing or infinite"),
        ({"matrix": np.ma.masked_array([[1], [2]])}, InvalidType, "masked"),
        ({"matrix": np.array([[2**63], [0]], dtype=np.uint64)}, InvalidArgument, "beyond 64-bit"),
        ({"matrix": np.array([[1]], dtype=np.longdouble)}, InvalidType, "integers or float64"),
        ({"hierarchies": {1: [["a", "*"]]}}, InvalidArgument, "hierarchy for column 1"),
        ({"hierarchies": {-1: [["a", "*"]]}}, InvalidArgument, "hierarchy for column -1"),
        ({"hierarchies": {0: [["a", "x"], ["b", "y"]]}}, InvalidArgument, "2 labels"),
        ({"hierarchies": {0: [["a", "*"], ["b", "*"]]}}, InvalidArgument, "does not know"),
        ({"matrix": [[0.5], [0], [1], [1]], "hierarchies": {0: [["a", "*"], ["b", "*"]]}}, InvalidArgument, "does not know"),
        ({"matrix": [[-1], [0], [1], [1]], "hierarchies": {0: [["a", "*"], ["b", "*"]]}}, InvalidArgument, "does not know"),
    ],
)
def test_refusals(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"matrix": [[1], [2], [3], [4]], "k": 1, **changed}
    with pytest.raises(error, match=words):
        cut_classes(**arguments)


def test_the_core_imports_no_compiler() -> None:
    """numba is loaded when something is cut for the first time."""
    program = (
        "import sys, release_pipeline.privacy as p; print('numba' in sys.modules)\n"
        "p.mondrian([[1], [2]], 1); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@numba.njit
def _share(low: int, high: int, least: int, most: int, kind: int, word: Any) -> float:
    return cut_kernel._share(low, high, least, most, kind, word)


@numba.njit
def _is_wider(
    one: int, other: int, share: Any, low: Any, high: Any, least: Any, most: Any, kinds: Any, limbs: Any, word: Any
) -> bool:
    return cut_kernel._is_wider(one, other, share, low, high, least, most, kinds, limbs, word)


def _hard_ends(chance: random.Random, kind: int) -> list[list[Any]]:
    """Least, low, high and greatest of two columns: far apart, or with shares that are equal or differ in the last bits only."""
    if chance.random() < 0.5:
        if kind == cut_kernel.WHOLE:
            q, other = chance.randint(2**60, 2**62), chance.randint(2**60, 2**62)
            p = chance.randint(2**59, q)
            return [[0, 0, p, q], [0, 0, min(p * other // q + chance.randint(0, 1), other), other]]
        p, q, factor = chance.uniform(0.1, 1), chance.uniform(1, 2), chance.choice([3.0, 0.1, 7.0])
        return [[-q, 0.0, p, q], [-q * factor, 0.0, p * factor, q * factor]]
    return [
        sorted(
            chance.choice([chance.randint(-(2**63), 2**63 - 1), chance.randint(-9, 9)])
            if kind == cut_kernel.WHOLE
            else chance.choice([chance.uniform(-1, 1) * 2.0 ** chance.randint(-1070, 1023), chance.randint(-9, 9) / 8])
            for _ in range(4)
        )
        for _ in range(2)
    ]


def _assert_compared_exactly(ends: list[list[Any]], kind: int) -> None:
    numbers = np.array(ends, dtype=np.int64 if kind == cut_kernel.WHOLE else np.float64) + 0
    words = numbers.view(np.int64)
    words = np.where(words < 0, words ^ np.int64(2**63 - 1), words) if kind == cut_kernel.FLOAT else words
    least, low, high, most = (np.ascontiguousarray(side) for side in words.T)
    exact = [(Fraction(b) - Fraction(a)) / (Fraction(d) - Fraction(c)) for c, a, b, d in numbers.tolist()]
    kinds, word = np.full(2, kind), np.zeros(1, dtype=np.int64)
    approximate = [_share(low[i], high[i], least[i], most[i], kind, word) for i in range(2)]
    for share in (np.array(approximate), np.array([np.nan, np.nan])):
        for one, other in ((0, 1), (1, 0)):
            limbs = np.zeros(cut_kernel._LIMBS, dtype=np.int64)
            wider = _is_wider(one, other, share, low, high, least, most, kinds, limbs, word)
            assert wider == (exact[one] > exact[other])


@pytest.mark.parametrize("kind", [cut_kernel.WHOLE, cut_kernel.FLOAT])
def test_shares_compare_exactly(kind: int) -> None:
    """The accumulator against fractions, with the shortcut through floats and without."""
    chance = random.Random(kind)  # noqa: S311
    for _ in range(3000):
        ends = _hard_ends(chance, kind)
        if all(four[0] < four[3] for four in ends):
            _assert_compared_exactly(ends, kind)


def test_shares_compare_exactly_at_the_ends_of_floats() -> None:
    """A range beyond the largest float; and shares so small that their floats have lost the bits that decide."""
    huge, tiny = 1.7e308, 5e-324
    _assert_compared_exactly([[-huge, 0.0, huge, huge], [0.0, 0.0, 0.1, 1.0]], cut_kernel.FLOAT)
    _assert_compared_exactly([[-huge, 0.0, huge, huge], [-huge, -huge, huge / 2, huge]], cut_kernel.FLOAT)
    smaller = [-0.49 * 2.0**-51, 0.0, 3 * tiny, 2.0]  # about 1.5 tiny, and in floats 2 tiny
    larger = [-0.51 * 2.0**-50, 0.0, 9 * tiny, 6.0]  # less short of 1.5 tiny, and in floats 1 tiny
    _assert_compared_exactly([smaller, larger], cut_kernel.FLOAT)


NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 10, 50])
def test_pycanon_counts_the_promised_k_on_adult(reference_data: Any, k: int) -> None:
    """Each class labelled by its ranges and by the labels its records share, as a reader would see it."""
    table = pd.read_csv(reference_data / "adult.csv", dtype=str, keep_default_na=False)
    names, declared = [*NUMERIC, "education", "marital_status"], {}
    matrix = np.empty((len(table), len(names)), dtype=np.int64)
    for place, name in enumerate(names):
        if name in NUMERIC:
            matrix[:, place] = table[name].astype(np.int64)
            continue
        rows = pd.read_csv(reference_data / "adult_hierarchies" / f"{name}.csv", dtype=str, keep_default_na=False)
        declared[place] = Hierarchy.of(rows.to_numpy().tolist())
        matrix[:, place] = declared[place].encode(table[name])
    found = cut_classes(matrix, k, hierarchies=declared)
    released = pd.DataFrame({"income": table["income"]})
    for place, name in enumerate(names):
        by_class = pd.Series(matrix[:, place]).groupby(found.label)
        if place in declared:
            levels = found.level[found.label, place]
            labels = [
                declared[place].labels[a][declared[place].codes[a, v]] for a, v in zip(levels, matrix[:, place], strict=True)
            ]
            released[name] = labels
        else:
            released[name] = by_class.transform("min").astype(str) + "-" + by_class.transform("max").astype(str)
    assert (released.drop(columns="income").groupby(found.label).nunique() == 1).all(axis=None)
    assert anonymity.k_anonymity(released, names) >= k
