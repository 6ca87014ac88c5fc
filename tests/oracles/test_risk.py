"""Linkage, groups and attacks against brute force, and against other people's programs, on adult and census.

Published figures are typed in from the test suites and manuals of sdcMicro (github.com/sdcTools/sdcMicro) and Anonymeter
(github.com/statice/anonymeter, commit 0188bdf).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from pycanon import anonymity

from experiments.linkage import record_linkage
from release_pipeline.mechanisms.attacks import TOLERANCE, Attacked, AttackedColumn, infer, link, single_out
from release_pipeline.mechanisms.clusters.hierarchy import group_by
from release_pipeline.mechanisms.clusters.mdav import mdav
from release_pipeline.mechanisms.noise import noise_stream, shuffled_positions
from release_pipeline.mechanisms.risk import neighbours as module
from release_pipeline.mechanisms.risk.neighbours import Neighbours
from release_pipeline.mechanisms.risk.risk import distinct_diversity

SECRET = bytes(range(32))
ENGINES = ("tree", "all compared")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two ways to look for neighbours, whatever the table."""
    monkeypatch.setattr(module, "MOST_AXES", 10**6 if request.param == "tree" else -1)
    monkeypatch.setattr(module, "_FEW", -1)
    return str(request.param)


@pytest.fixture
def in_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and lists so short that every table has several."""
    monkeypatch.setattr(module, "_BLOCK", 7)
    monkeypatch.setattr(module, "_DISTANCES", 300)
    monkeypatch.setattr(module, "_MEMBERS", 5)


def plain_nearest(
    known: list[list[Fraction]], codes: list[list[int]], point: list[Fraction], code: list[int], power: int
) -> list[int]:
    """The known records nearest to a point, in exact arithmetic."""
    distances = [
        sum((abs(a - b) ** power for a, b in zip(row, point, strict=True)), Fraction(0))
        + sum(a != b for a, b in zip(levels, code, strict=True))
        for row, levels in zip(known, codes, strict=True)
    ]
    return [number for number, distance in enumerate(distances) if distance == min(distances)]


def found_nearest(neighbours: Neighbours, points: npt.NDArray[np.float64], codes: npt.NDArray[np.int64]) -> list[list[int]]:
    """The same as `plain_nearest`, read from what `search` yields, for all points."""
    rows: list[list[int]] = []
    for near in neighbours.search(points, codes):
        assert near.first == len(rows)
        for members in np.split(near.member, near.start[1:-1]):
            assert len(set(members.tolist())) == len(members)
            rows.append(np.flatnonzero(np.isin(neighbours.place, members)).tolist())
    return rows


@pytest.mark.usefixtures("in_many_blocks")
@pytest.mark.parametrize("power", [1, 2])
def test_neighbours_and_their_ties_are_those_of_exact_arithmetic(engine: str, power: int) -> None:
    """Small integers and tenths, with many ties and equal rows, numbers that nobody has, and levels that no known record has."""
    tied = merged = 0
    for seed in range(60):
        chance = random.Random(f"{power} {seed}")  # noqa: S311
        n, m, c = chance.randint(1, 40), chance.randint(0, 4), chance.randint(0, 3) if power == 1 else 0
        if m + c == 0:
            continue
        unit = chance.choice([1, Fraction(1, 10), Fraction(1, 3)])
        known = [[Fraction(chance.randint(-3, 3)) * unit for _ in range(m)] for _ in range(n)]
        codes = [[chance.randint(-1, 2) for _ in range(c)] for _ in range(n)]
        points = [[Fraction(chance.randint(-8, 8)) * unit / 2 for _ in range(m)] for _ in range(25)]
        sought = [[chance.randint(-2, 3) for _ in range(c)] for _ in range(25)]
        arrays = [np.array(table, dtype=np.float64).reshape(len(table), m) for table in (known, points)]
        levels = [np.array(table, dtype=np.int64).reshape(len(table), c) for table in (codes, sought)]
        neighbours = Neighbours(arrays[0], power=power, codes=levels[0])
        wanted = [plain_nearest(known, codes, point, code, power) for point, code in zip(points, sought, strict=True)]
        assert found_nearest(neighbours, arrays[1], levels[1]) == wanted
        distance, count = neighbours.count(arrays[1], levels[1])
        assert count.tolist() == [len(rows) for rows in wanted]
        differences = np.abs(arrays[0][[rows[0] for rows in wanted]] - arrays[1]) ** power
        differing = levels[0][[rows[0] for rows in wanted]] != levels[1]
        exact = (differences.sum(axis=1) + differing.sum(axis=1)) ** (1 / power)
        np.testing.assert_allclose(distance, exact, rtol=1e-12, atol=1e-12)
        tied += sum(len(rows) > 1 for rows in wanted)
        merged += len(neighbours.weight) < n
    assert tied > 400
    assert merged > 20


def plain_linkage(
    original: list[list[int]], released: list[list[int]], own: list[int], groups: list[int] | None, positions: list[int]
) -> float:
    """KDP13's record linkage, in exact arithmetic: squared differences over variances."""
    n, m = len(original), len(original[0])
    means = [Fraction(sum(row[j] for row in original), n) for j in range(m)]
    variances = [sum((row[j] - means[j]) ** 2 for row in original) / n or Fraction(1) for j in range(m)]
    linked = Fraction(0)
    for position in positions:
        mine = own[position]
        others = [i for i in range(n) if groups is None or groups[i] == groups[mine]]
        distance = {
            i: sum((Fraction((original[i][j] - released[position][j]) ** 2) / variances[j] for j in range(m)), Fraction(0))
            for i in others
        }
        nearest = [i for i in others if distance[i] == min(distance.values())]
        linked += Fraction(mine in nearest, len(nearest))
    return float(linked / len(positions))


@pytest.mark.parametrize("by_group", [False, True])
def test_record_linkage_is_that_of_exact_arithmetic(engine: str, by_group: bool) -> None:
    fractions = 0
    for seed in range(40):
        chance = random.Random(f"{by_group} {seed}")  # noqa: S311
        n, m = chance.randint(1, 25), chance.randint(1, 4)
        width = chance.choice([1, 3, 100])
        original = [[chance.randint(0, width) for _ in range(m)] for _ in range(n)]
        own = chance.sample(range(n), chance.randint(1, n))
        released = [[value + chance.choice([0, 0, 1, -1, 40]) for value in original[row]] for row in own]
        groups = [chance.randint(5, 7) for _ in range(n)] if by_group else None
        positions = chance.sample(range(len(own)), chance.randint(1, len(own)))
        share = record_linkage(original, released, own, positions=positions, groups=groups)
        assert share.value == pytest.approx(plain_linkage(original, released, own, groups, positions), abs=1e-12)
        assert share.tried == len(positions)
        assert share.among == len(own)
        fractions += 0 < share.value < 1
    assert fractions > 15


QUASIS = ["workclass", "education", "marital_status", "sex"]


@pytest.fixture(scope="module")
def adult(reference_data: Path) -> pd.DataFrame:
    return pd.read_csv(reference_data / "adult.csv", dtype={"age": int, "hours_per_week": int}, keep_default_na=False)


@pytest.mark.filterwarnings("ignore:In a future version, the keys")  # pycanon groups by a list of one name
@pytest.mark.parametrize(("number", "rows"), [(1, 40_000), (2, 40_000), (4, 250)])
def test_adult_has_the_k_and_l_that_pycanon_counts(adult: pd.DataFrame, number: int, rows: int) -> None:
    adult = adult.iloc[:rows]
    quasis = QUASIS[-number:]
    groups = group_by([pd.factorize(adult[name])[0] for name in quasis])
    assert np.bincount(groups).min() == anonymity.k_anonymity(adult, quasis)
    for secret in ("age", "hours_per_week", "occupation", "race"):
        values = pd.factorize(adult[secret])[0]
        assert distinct_diversity(groups, values) == anonymity.l_diversity(adult, quasis, [secret])


@pytest.mark.filterwarnings("ignore:In a future version, the keys")
def test_clusters_of_census_have_the_k_and_l_that_pycanon_counts(reference_columns: Callable[[str], Any]) -> None:
    """Numbers with hundreds of different values, in ten clusters of MDAV."""
    table = reference_columns("census")
    groups = mdav(np.stack([table[name][0] for name in ("AGI", "FICA")], axis=1), 100)
    frame = pd.DataFrame({"cluster": groups} | {name: table[name][0] for name in ("POTHVAL", "FEDTAX")})
    assert np.bincount(groups).min() == anonymity.k_anonymity(frame, ["cluster"]) == 100
    for secret in ("POTHVAL", "FEDTAX"):
        assert distinct_diversity(groups, frame[secret].to_numpy()) == anonymity.l_diversity(frame, ["cluster"], [secret])


def mixed_table(chance: random.Random, n: int) -> Attacked:
    """Two columns of small numbers and two of categories, changed here and there, so that there are ties of all kinds."""
    columns: list[AttackedColumn] = []
    for name, most in (("a", 6), ("b", 60)):
        original = [chance.randint(0, most) for _ in range(n)]
        released = [value + chance.choice([0, 0, 1, -2]) for value in original]
        columns.append(AttackedColumn(name, np.array(original, dtype=np.float64), np.array(released, dtype=np.float64)))
    for name in ("c", "d"):
        original = [chance.randint(-1, 2) for _ in range(n)]
        released = [value if chance.random() < 0.7 else chance.randint(-1, 3) for value in original]
        columns.append(AttackedColumn(name, np.array(original), np.array(released)))
    return Attacked(tuple(columns))


def plain_near(table: Attacked, names: list[str], left: list[int], person: int) -> list[int]:
    """The released rows nearest to a person by some columns, by Gower's distance in exact arithmetic."""
    distance = dict.fromkeys(left, Fraction(0))
    for column in table.columns:
        released, truth = column.released.tolist(), column.original.tolist()[person]
        if column.name not in names:
            continue
        width = max(released[i] for i in left) - min(released[i] for i in left)
        for row in left:
            if not column.is_numeric:
                distance[row] += released[row] != truth
            elif width:
                distance[row] += abs(Fraction(released[row]) - Fraction(truth)) / Fraction(width)
    return [row for row in left if distance[row] == min(distance.values())]


def drawn(n: int) -> tuple[list[int], list[int], list[int]]:
    """Targets, control group and rows left, as they are drawn with this secret."""
    order = shuffled_positions(n, noise_stream(SECRET)).tolist()
    return order[n // 3 : 2 * (n // 3)], order[: n // 3], sorted(order[n // 3 :])


def test_linking_is_that_of_exact_arithmetic(engine: str) -> None:
    for seed in range(12):
        n = 20 + seed
        table = mixed_table(random.Random(seed), n)  # noqa: S311
        targets, control, left = drawn(n)
        wanted: list[float] = []
        for people in (targets, control):
            total = 0.0
            for person in people:
                one, other = (set(plain_near(table, names, left, person)) for names in (["a", "c"], ["b", "d"]))
                total += len(one & other) / (len(one) * len(other))
            wanted.append(total / len(people))
        found = link(table, stream=noise_stream(SECRET))
        assert (found.attack.value, found.control.value) == pytest.approx(tuple(wanted), abs=1e-12)
        assert found.guess == 1 / len(left)


def test_inference_is_that_of_exact_arithmetic(engine: str) -> None:
    for seed in range(8):
        n = 24 + seed
        table = mixed_table(random.Random(100 + seed), n)  # noqa: S311
        targets, control, left = drawn(n)
        found = infer(table, stream=noise_stream(SECRET))
        assert [attack.name for attack in found.columns] == [f"inferring {name}" for name in "abcd"]
        for column, attack in zip(table.columns, found.columns, strict=True):
            others = [name for name in "abcd" if name != column.name]
            tolerance = 0.0
            if column.is_numeric:
                tolerance = TOLERANCE * float(np.mean(np.abs(column.original - np.median(column.original))))
            within = [np.abs(column.released[left] - v - tolerance) <= tolerance for v in column.released[left]]
            best = [
                v for v, hits in zip(column.released[left], within, strict=True) if hits.sum() == np.sum(within, axis=1).max()
            ]
            guesses = [np.mean(np.abs(column.original - v - tolerance) <= tolerance) for v in best]
            assert any(attack.guess == pytest.approx(guess) for guess in guesses)
            wanted = []
            for people in (targets, control):
                successes = []
                for person in people:
                    rows = plain_near(table, others, left, person)
                    hits = np.abs(column.released[rows] - column.original[person]) <= tolerance
                    successes.append(hits.mean())
                wanted.append(float(np.mean(successes)))
            assert (attack.attack.value, attack.control.value) == pytest.approx(tuple(wanted), abs=1e-12)
        assert found.overall.attack.value == pytest.approx(np.mean([attack.attack.value for attack in found.columns]))


def plain_meets(column: npt.NDArray[Any], comparison: str, value: float) -> npt.NDArray[np.bool_]:
    return {"<=": column <= value, ">=": column >= value, "==": column == value}[comparison]


def test_predicates_single_out_whom_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every predicate tried: exactly one released row of the half meets it, and its successes are counted row by row."""
    from release_pipeline.mechanisms.attacks import singling_out

    seen: list[list[Any]] = []
    for maker in ("make_by_one_column", "make_by_several_columns"):
        plain = getattr(singling_out, maker)
        monkeypatch.setattr(singling_out, maker, lambda *args, _plain=plain: seen.append(_plain(*args)) or seen[-1])
    table = mixed_table(random.Random(5), 300)  # noqa: S311
    wide = AttackedColumn("e", np.arange(300) ** 2 / 7.0, np.round(np.arange(300) ** 2 / 7.0))
    table = Attacked((*table.columns, wide))
    found = single_out(table, stream=noise_stream(SECRET))
    order = shuffled_positions(300, noise_stream(SECRET))
    targets, control = order[:150], order[150:]
    assert len(seen) == 2
    for attack, predicates in zip(found, seen, strict=True):
        assert len(set(predicates)) == len(predicates) == attack.attack.tried > 50
        counts: list[list[int]] = []
        for predicate in predicates:
            met = [np.ones(150, dtype=np.bool_) for _ in range(3)]
            for place, comparison, value in predicate:
                column = table.columns[place]
                for mask, there in zip(
                    met, (column.released[targets], column.original[targets], column.original[control]), strict=True
                ):
                    mask &= plain_meets(there, comparison, value)
            counts.append([int(mask.sum()) for mask in met])
        assert {released for released, _, _ in counts} == {1}
        assert attack.attack.value == pytest.approx(np.mean([count == 1 for _, count, _ in counts]))
        assert attack.control.value == pytest.approx(np.mean([count == 1 for _, _, count in counts]))
    assert {len(predicate) for predicate in seen[0]} == {1}
    assert {len(predicate) for predicate in seen[1]} == {2, 3, 4, 5}
    assert found[0].worst == "e"
