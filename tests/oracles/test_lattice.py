"""OLA against full enumeration: levels, suppressed records, classes and loss, on random problems and on Adult."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import floor, fsum, log2
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycanon import anonymity

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy import lattice, ola
from release_pipeline.privacy.hierarchy import Hierarchy
from release_pipeline.privacy.lattice import Metric, search_lattice
from tests.oracles import full_enumeration as plain

METRICS = get_args(Metric)
ADULT = ("age", "sex", "race", "marital_status")
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


def run(problem: Problem, k: int, allowed: Any, metric: str, **options: Any) -> lattice.Generalisation:
    rows, hierarchies = problem
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return ola(columns, [list(labels.values()) for labels in hierarchies], k, allowed, metric)


def same_partition(one: list[Any], other: list[Any]) -> bool:
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


def assert_equal(found: lattice.Generalisation, wanted: plain.Node, metric: str) -> None:
    assert found.levels == wanted.levels
    assert found.suppressed.tolist() == wanted.suppressed
    assert found.loss == pytest.approx(plain.bits(wanted.loss) if metric == "entropy" else float(wanted.loss), abs=1e-4)
    assert (found.group < 0).tolist() == wanted.suppressed
    kept = [(a, b) for a, b, gone in zip(found.group.tolist(), wanted.classes, wanted.suppressed, strict=True) if not gone]
    if kept:
        assert same_partition(*(list(side) for side in zip(*kept, strict=True)))
        assert {group for group, _ in kept} == set(range(max(group for group, _ in kept) + 1))


@pytest.mark.parametrize("seed", range(200))
def test_random_problems_equal_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every metric, with and without suppression; by table and by sorting,
    from the first histogram and from those in between.
    """
    chance = random.Random(seed)  # noqa: S311
    monkeypatch.setattr(lattice, "_DIRECT", chance.choice([0, 1, lattice._DIRECT]))
    monkeypatch.setattr(lattice, "_WORTH_KEEPING", chance.choice([1, lattice._WORTH_KEEPING]))
    problem = random_problem(chance)
    n = len(problem[0])
    k = chance.choice([1, 2, 2, 3, 5])
    for metric in METRICS:
        every = list(plain.nodes(*problem, k, metric))
        assert len(every) == np.prod([len(next(iter(h.values()))) for h in problem[1]])
        for allowed in (0, chance.randint(0, n), chance.choice([0.05, 0.1, 0.3])):
            budget = allowed if isinstance(allowed, int) else Fraction(str(allowed)) * n
            wanted = plain.best(iter(every), budget)
            if wanted is None:
                with pytest.raises(InvalidArgument, match="no generalisation is possible"):
                    run(problem, k, allowed, metric)
                continue
            found = run(problem, k, allowed, metric)
            assert_equal(found, wanted, metric)
            assert found.nodes == len(every)
            assert 1 <= found.evaluated <= found.nodes


@given(st.integers(0, 10**6))
def test_feasibility_and_losses_are_monotone(seed: int) -> None:
    """One level up in one column, no record is newly suppressed and no loss falls: what the pruning rests on."""
    chance = random.Random(seed)  # noqa: S311
    problem = random_problem(chance)
    for metric in METRICS:
        every = {node.levels: node for node in plain.nodes(*problem, 2, metric)}
        for levels, node in every.items():
            for column in range(len(levels)):
                above = every.get((*levels[:column], levels[column] + 1, *levels[column + 1 :]))
                if above is not None:
                    assert above.loss >= node.loss
                    assert all(low or not high for low, high in zip(node.suppressed, above.suppressed, strict=True))


def test_charging_suppressed_records_to_the_loss_would_break_it() -> None:
    """methods.md section 5: if suppressed records are charged as fully generalised ones, the loss can fall on the way up."""
    problem: Problem = ([["a"], ["b"], ["c"], ["d"]], [{v: [v, "x" if v in "ab" else "y", "*"] for v in "abcd"}])
    every = list(plain.nodes(*problem, 2, "categorical-precision"))
    charged = [sum(Fraction(1) if gone else node.loss for gone in node.suppressed) / len(node.suppressed) for node in every]
    assert charged == [1, Fraction(1, 2), 1]


@pytest.mark.parametrize("metric", METRICS)
def test_ties_go_to_the_lexicographically_smallest_levels(metric: str) -> None:
    """Two columns that are the same: generalising the first or the second costs the same; (0, 1) comes before (1, 0)."""
    labels = {value: [value, "*"] for value in ("a", "b")}
    rows = [["a", "a"], ["a", "b"], ["b", "a"], ["b", "b"]]
    assert run((rows, [labels, labels]), 2, 0, metric).levels == (0, 1)
    three = [[*row, "a"] for row in rows] + [[*row, "b"] for row in rows]
    assert run((three, [labels, labels, labels]), 4, 0, metric).levels == (0, 1, 1)


def test_logarithms_of_equal_products_are_equal() -> None:
    """So that sums of different terms tie where they are the same number: seed 110 above has such a tie."""
    assert lattice._log2(9 * 25 * 7, 2**50) == 2 * lattice._log2(15, 2**50) + lattice._log2(7, 2**50)
    assert lattice._log2(2**20, 2**30) == 20 * 2**30
    assert lattice._log2(2_147_483_647, 2**20) == round(log2(2_147_483_647) * 2**20)


@pytest.mark.parametrize(
    ("allowed", "levels"),
    [
        (0, (1,)),
        (1, (1,)),
        (2, (0,)),
        (0.5, (1,)),
        (0.05, (1,)),
        (Decimal("0.4"), (0,)),
        (0.4, (0,)),
        (np.float32(0.4), (0,)),
        (np.int64(2), (0,)),
        (Fraction(2, 5), (0,)),
        (Fraction(2, 5) - Fraction(1, 10**30), (1,)),
    ],
)
def test_the_budget_is_exact(allowed: Any, levels: tuple[int, ...]) -> None:
    """Two of five records are alone: 2 is enough and 1 is not; 0.4 means two fifths, though the float is not quite that."""
    if allowed == 0.5:
        levels = (0,)
    rows = [["a"], ["a"], ["a"], ["b"], ["c"]]
    found = run((rows, [{value: [value, "*"] for value in "abc"}]), 2, allowed, "entropy")
    assert found.levels == levels
    assert found.suppressed.sum() == (2 if levels == (0,) else 0)


def test_a_share_means_its_decimal() -> None:
    """0.07 of 100 records is 7, though 0.07 * 100 in floats is above 7 and 0.29 * 100 is below 29."""
    rows = [["a"]] * 71 + [[f"b{i}"] for i in range(29)]
    labels = {value: [value, "*"] for value in ["a", *(f"b{i}" for i in range(29))]}
    assert floor(0.29 * 100) == 28
    assert run((rows, [labels]), 2, 0.29, "entropy").levels == (0,)
    assert run((rows, [labels]), 2, 0.2899999, "entropy").levels == (1,)


def test_all_records_may_be_suppressed_if_the_budget_says_so() -> None:
    found = run(([["a"], ["b"]], [{"a": ["a", "*"], "b": ["b", "*"]}]), 3, 1.0, "entropy")
    assert found.levels == (0,)
    assert found.suppressed.all()
    assert found.group.tolist() == [-1, -1]


def test_wide_tables_do_not_overflow() -> None:
    """30 columns of 8 values: far more possible classes than 64 bits number. Each column but one has a single level."""
    chance = random.Random(5)  # noqa: S311
    flat = {f"v{i}": [f"v{i}"] for i in range(8)}
    deep = {f"v{i}": [f"v{i}", f"w{i // 4}", "*"] for i in range(8)}
    half = [[chance.choice(list(flat)) for _ in range(30)] for _ in range(20)]
    rows = [[f"v{chance.randrange(8)}", *row[1:]] for row in half + half]
    for metric in METRICS:
        problem = (rows, [deep, *[flat] * 29])
        wanted = plain.best(plain.nodes(*problem, 2, metric), 4)
        assert wanted is not None
        assert_equal(run(problem, 2, 4, metric), wanted, metric)


def test_two_calls_share_nothing() -> None:
    """A peer (crowds) returned the first table on every later call: other records, then the first ones again."""
    labels = {value: [value, "*"] for value in "abc"}
    first: Problem = ([["a"], ["a"], ["b"], ["b"]], [labels])
    second: Problem = ([["a"], ["b"], ["c"], ["c"]], [labels])
    once, other, again = (run(problem, 2, 0, "entropy") for problem in (first, second, first))
    assert once.levels == again.levels == (0,)
    assert once.group.tolist() == again.group.tolist() == [0, 0, 1, 1]
    assert other.levels == (1,)
    assert other.group.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("lookalike", ["NA", "?", "*", "nan", "NaN", "-1", "None", "null", " ", "<NA>"])
def test_a_value_that_looks_missing_is_a_value(lookalike: str) -> None:
    """A peer (sdcMicro) took such a value for a missing one, which goes with any class; here it is in a class of its own."""
    labels = {"a": ["a", "any"], lookalike: [lookalike, "any"]}
    rows = [["a"], ["a"], [lookalike]]
    found = run((rows, [labels]), 2, 1, "entropy")
    assert found.levels == (0,)
    assert found.suppressed.tolist() == [False, False, True]
    assert run((rows, [labels]), 2, 0, "entropy").levels == (1,)


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_a_missing_entry_is_no_value(missing: object) -> None:
    """Even where the hierarchy has a value that is spelt like it."""
    labels = [[name, "any"] for name in ("a", "None", "nan", "<NA>", "NaT")]
    with pytest.raises(InvalidArgument, match="1 missing"):
        ola([np.array(["a", "a", missing], dtype=object)], [labels], 2)
    with pytest.raises(InvalidArgument, match="1 missing"):
        ola(pd.DataFrame({"x": pd.Series(["a", "a", missing], dtype=object)}), {"x": labels}, 2)


def test_values_that_no_hierarchy_covers_are_refused_and_not_shown() -> None:
    """ARX users' most frequent trouble: a hierarchy that misses values. They are counted, and the column is named."""
    with pytest.raises(InvalidArgument, match=r"column illness: 2 records have 1 different values") as caught:
        ola({"illness": ["flu", "canary", "canary"]}, {"illness": [["flu", "*"]]}, 2)
    assert "canary" not in str(caught.value)


def test_whole_numbers_match_as_text() -> None:
    hierarchy = [[str(age), "young" if age < 50 else "old", "*"] for age in range(100)]
    for ages in (
        np.array([20, 30, 60, 70]),
        np.array([20, 30, 60, 70], dtype=np.uint8),
        [20, 30, 60, 70],
        ["20", "30", "60", "70"],
    ):
        found = ola([ages], [hierarchy], 2)
        assert found.levels == (1,)
        assert found.group.tolist() == [1, 1, 0, 0] or found.group.tolist() == [0, 0, 1, 1]


def test_columns_by_name_in_their_own_order() -> None:
    """A data frame and a mapping give what sequences give; the order of levels is that of the columns."""
    deep, flat = [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]], [["m", "*"], ["f", "*"]]
    columns = {"deep": ["a", "b", "c", "a"], "flat": ["m", "m", "f", "f"]}
    by_place = ola(list(columns.values()), [deep, flat], 2)
    for table in (columns, pd.DataFrame(columns)):
        by_name = ola(table, {"flat": flat, "deep": deep}, 2)
        assert by_name.levels == by_place.levels
        assert by_name.group.tolist() == by_place.group.tolist()


HIERARCHY = Hierarchy.of([("a", "*"), ("b", "*")])
CODES = np.array([[0], [0], [1]])


@pytest.mark.parametrize(
    ("changed", "error", "words"),
    [
        ({"k": 0}, InvalidArgument, "k is below 1"),
        ({"k": 2.0}, InvalidType, "k must be a whole number"),
        ({"k": True}, InvalidType, "k must be a whole number"),
        ({"max_suppressed": -1}, InvalidArgument, "negative"),
        ({"max_suppressed": -0.1}, InvalidArgument, "not from 0 to 1"),
        ({"max_suppressed": 1.5}, InvalidArgument, "not from 0 to 1"),
        ({"max_suppressed": float("nan")}, InvalidArgument, "not from 0 to 1"),
        ({"max_suppressed": float("inf")}, InvalidArgument, "not from 0 to 1"),
        ({"max_suppressed": Decimal("nan")}, InvalidArgument, "not from 0 to 1"),
        ({"max_suppressed": "5%"}, InvalidType, "number of records"),
        ({"max_suppressed": True}, InvalidType, "number of records"),
        ({"metric": "aecs"}, InvalidArgument, "no such metric"),
        ({"codes": CODES.astype(float)}, InvalidType, "int64"),
        ({"codes": CODES[:, 0]}, InvalidType, "int64"),
        ({"codes": CODES - 1}, InvalidArgument, "does not know"),
        ({"codes": CODES + 1}, InvalidArgument, "does not know"),
        ({"codes": CODES[:0]}, InvalidArgument, "no records"),
        ({"hierarchies": [HIERARCHY] * 2}, InvalidArgument, "1 columns and 2 hierarchies"),
        ({"codes": CODES[:, :0], "hierarchies": []}, InvalidArgument, "0 columns"),
        ({"codes": np.zeros((3, 25), dtype=np.int64), "hierarchies": [HIERARCHY] * 25}, InvalidArgument, "33,554,432 nodes"),
        ({"codes": np.zeros((3, 33), dtype=np.int64), "hierarchies": [HIERARCHY] * 33}, InvalidArgument, "33 columns"),
        ({"k": 4}, InvalidArgument, "no generalisation is possible"),
    ],
)
def test_refusals(changed: dict[str, Any], error: type[Exception], words: str) -> None:
    arguments: dict[str, Any] = {"codes": CODES, "hierarchies": [HIERARCHY], "k": 2, **changed}
    with pytest.raises(error, match=words):
        search_lattice(**arguments)


@pytest.mark.parametrize(
    ("columns", "hierarchies", "words"),
    [
        ([["a"]], {"x": HIERARCHY}, "by name, or both by place"),
        ({"x": ["a"]}, [HIERARCHY], "by name, or both by place"),
        ({"x": ["a"]}, {"x": HIERARCHY, "y": HIERARCHY}, "y"),
        ({"x": ["a"], "y": ["a"]}, {"x": HIERARCHY}, "y"),
        ([["a"], ["a"]], [HIERARCHY], "2 columns and 1 hierarchies"),
        ([["a"], ["a", "b"]], [HIERARCHY] * 2, "different lengths"),
        ([], [], "0 columns"),
    ],
)
def test_columns_that_do_not_match(columns: Any, hierarchies: Any, words: str) -> None:
    with pytest.raises((InvalidArgument, InvalidType), match=words):
        ola(columns, hierarchies, 1)


def test_long_work_tells_how_far_it_is() -> None:
    """65,536 nodes, a text at each step if one waits no time between them."""
    texts: list[str] = []
    codes = np.array([[0] * 16, [1] * 16, [0] * 8 + [1] * 8])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_PROGRESS_SECONDS", 0.0)
        found = search_lattice(codes, [HIERARCHY] * 16, 2, 0, progress=texts.append)
    assert found.levels == (1,) * 16
    assert found.nodes == 2**16
    assert len(texts) == found.evaluated - 1
    assert "65,536 generalisations" in texts[0]


@pytest.fixture(scope="module")
def adult(reference_data: Any) -> pd.DataFrame:
    return pd.read_csv(reference_data / "adult.csv", dtype=str, keep_default_na=False)


@pytest.fixture(scope="module")
def adult_hierarchy(reference_data: Any) -> Callable[[str], pd.DataFrame]:
    def load(name: str) -> pd.DataFrame:
        return pd.read_csv(reference_data / "adult_hierarchies" / f"{name}.csv", dtype=str, keep_default_na=False)

    return load


@dataclass(frozen=True)
class Counted:
    """A node with the class size of every record, and its losses."""

    levels: tuple[int, ...]
    size: npt.NDArray[np.int64]
    loss: dict[str, Fraction | int | float]


def _enumerate_adult(table: pd.DataFrame, hierarchies: list[pd.DataFrame]) -> list[Counted]:
    """Every node with pandas, on the records."""
    labels = [
        [table[name].map(dict(zip(h["level0"], h[level], strict=True))) for level in h.columns]
        for name, h in zip(ADULT, hierarchies, strict=True)
    ]
    bits = [
        [fsum(log2(a / b) for a, b in zip(_sizes(column), _sizes(of_column[0]), strict=True)) for column in of_column]
        for of_column in labels
    ]
    found: list[Counted] = []
    for levels in product(*(range(len(of_column)) for of_column in labels)):
        frame = pd.concat([of_column[level] for of_column, level in zip(labels, levels, strict=True)], axis=1)
        size = frame.groupby(list(ADULT), sort=False)[ADULT[0]].transform("size").to_numpy()
        precision = sum(Fraction(a, len(c) - 1) for a, c in zip(levels, labels, strict=True)) / len(labels)
        entropy = fsum(c[a] for a, c in zip(levels, bits, strict=True))
        losses = {"categorical-precision": precision, "discernibility": int(size.sum()), "entropy": entropy}
        found.append(Counted(levels, size, losses))
    return found


def _sizes(column: pd.Series) -> list[int]:
    return column.map(column.value_counts()).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("complete", [True, False])
def test_adult_equals_enumeration(adult: pd.DataFrame, adult_hierarchy: Callable[[str], pd.DataFrame], complete: bool) -> None:
    """Age, sex, race, marital status: the 30,162 complete records and all 32,561, six k, 5% and none suppressed."""
    table = adult[(adult != "?").all(axis=1)] if complete else adult
    assert len(table) == (30162 if complete else 32561)
    hierarchies = [adult_hierarchy(name) for name in ADULT]
    declared = [Hierarchy.of(h.to_numpy().tolist()) for h in hierarchies]
    codes = np.column_stack([h.encode(table[name]) for name, h in zip(ADULT, declared, strict=True)])
    every = _enumerate_adult(table, hierarchies)
    for k, allowed, metric in product((2, 5, 10, 20, 50, 100), (0, 0.05), METRICS):
        budget = floor(Fraction(str(allowed)) * len(table))
        feasible = [node for node in every if (node.size < k).sum() <= budget]
        wanted = min(feasible, key=lambda node: (node.loss[metric], node.levels))
        found = search_lattice(codes, declared, k, allowed, metric)
        assert found.levels == wanted.levels
        assert np.array_equal(found.suppressed, wanted.size < k)
        assert found.loss == pytest.approx(float(wanted.loss[metric]), rel=1e-12, abs=1e-4)
        assert np.array_equal(
            np.bincount(found.group[~found.suppressed])[found.group[~found.suppressed]], wanted.size[wanted.size >= k]
        )


def _generalise(table: pd.DataFrame, hierarchies: list[pd.DataFrame], found: lattice.Generalisation) -> pd.DataFrame:
    out = {
        name: table[name].map(dict(zip(h["level0"], h[f"level{level}"], strict=True)))
        for name, h, level in zip(ADULT, hierarchies, found.levels, strict=True)
    }
    return pd.DataFrame(out)[~found.suppressed].reset_index(drop=True)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "metric"), [(2, "entropy"), (10, "categorical-precision"), (50, "discernibility")])
def test_pycanon_counts_the_promised_k_on_adult(
    adult: pd.DataFrame, adult_hierarchy: Callable[[str], pd.DataFrame], k: int, metric: Metric
) -> None:
    """Labels put in place and suppressed records dropped, as a reader would see them."""
    hierarchies = [adult_hierarchy(name) for name in ADULT]
    declared = {name: h.to_numpy().tolist() for name, h in zip(ADULT, hierarchies, strict=True)}
    found = ola(adult[list(ADULT)], declared, k, 0.05, metric)
    released = _generalise(adult, hierarchies, found)
    assert len(released) >= 0.95 * len(adult)
    assert anonymity.k_anonymity(released, list(ADULT)) >= k
