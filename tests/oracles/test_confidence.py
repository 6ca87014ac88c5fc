"""(k,epsilon)-anonymity against brute force: whom the confidence boxes expose, and how far a number tells records apart.

The oracle of the boxes looks at all pairs of records in plain Python. That of the claim lists every draw, sends it through the
code that adds noise and clamps, and compares what any two originals of a class make of it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from decimal import Decimal, localcontext
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from release_pipeline.masking.classes import ClassStrategy
from release_pipeline.masking.strategy import CLASS, RECORD
from release_pipeline.mechanisms import Epsilon, Grid
from release_pipeline.mechanisms.columns import class_noise
from release_pipeline.mechanisms.columns.class_noise import add_class_noise, class_scales
from release_pipeline.mechanisms.risk import standing_out
from release_pipeline.mechanisms.risk.standing_out import find_exposed
from release_pipeline.policy import Policy, parse_policy
from release_pipeline.policy.file.options import KEpsilonOptions
from release_pipeline.rows.columns import read_tables

DIGITS = 60
ROUNDING = Decimal("1e-50")  # where two sides are equal, their last digits are not
Rows = list[list[int]]


def exposed_by_hand(original: Rows, released: Rows, group: list[int], widths: Rows, k: int) -> list[bool]:
    """All pairs: is this original of the same class, and in every column within reach?"""
    found: list[bool] = []
    for number, mine in zip(released, group, strict=True):
        inside = 0
        for other, its in zip(original, group, strict=True):
            if mine == its >= 0 and all(abs(a - b) <= w for a, b, w in zip(number, other, widths[mine], strict=True)):
                inside += 1
        found.append(0 < inside < k)
    return found


def small_by_hand(group: list[int], kept: list[bool], k: int) -> list[bool]:
    """A kept record with fewer than k kept ones of its class, itself included."""
    found: list[bool] = []
    for mine, stays in zip(group, kept, strict=True):
        fellows = sum(its == mine and also for its, also in zip(group, kept, strict=True))
        found.append(stays and mine >= 0 and fellows < k)
    return found


@cache
def width_by_hand(t: int, confidence: Decimal, m: int) -> int:
    """The least w for which the probabilities of -w..w add up to c^(1/m)."""
    with localcontext() as context:
        context.prec = DIGITS
        mass = Decimal(1)
        q = (Decimal(-1) / t).exp() if t else Decimal(0)
        mass = total = (1 - q) / (1 + q)
        w = 0
        while total**m < confidence:
            mass, w = mass * q, w + 1
            total += 2 * mass
        return w


def random_classes(chance: random.Random, n: int, some: int) -> list[int]:
    """Classes 0.. without gaps, and records without any; `some`: how many classes at most."""
    drawn = [chance.randrange(-1, some) for _ in range(n)]
    numbers = {g: place for place, g in enumerate(sorted({g for g in drawn if g >= 0}))}
    return [numbers.get(g, -1) for g in drawn]


def as_array(rows: Sequence[Any], columns: int) -> Any:
    return np.array(rows, dtype=np.int64).reshape(len(rows), columns)


def as_columns(rows: Sequence[Any], columns: int) -> list[Any]:
    return list(as_array(rows, columns).T)


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_exposed_records_are_those_of_all_pairs(seed: int, m: int) -> None:
    """Few different numbers, so that ties are many and originals lie on the edges of boxes; boxes of width 0, too."""
    chance = random.Random(1000 * m + seed)  # noqa: S311
    n, high = chance.randint(0, 30), chance.choice([0, 3, 12, 60])
    group = random_classes(chance, n, chance.randint(1, 4))
    original = [[chance.randint(0, high) for _ in range(m)] for _ in range(n)]
    released = [[chance.randint(-3, high + 3) for _ in range(m)] for _ in range(n)]
    count = max(group, default=-1) + 1
    widths = [[chance.choice([0, 0, 1, 2, 5, 20, 2**63 - 1]) for _ in range(m)] for _ in range(count)]
    for k in (1, 2, 3, 7):
        found = find_exposed(as_columns(original, m), as_columns(released, m), np.array(group, np.int64), as_array(widths, m), k)
        assert found.tolist() == exposed_by_hand(original, released, group, widths, k)
        assert k > 1 or not found.any()


HEIGHT, WEIGHT = Grid.declare((-10, 20), 1), Grid.declare((0, 10), "0.1")
ILLNESSES = ("flu", "mumps", "none")


def make_policy(columns: int, k: int, confidence: str | None) -> Policy:
    """One or two noise columns; a weight on a grid of a tenth, which floats do not have exactly."""
    weight = "  weight: {role: quasi, do: noise, domain: [0, 10], grid: 0.1, outside: clamp, missing: fail, why: test}\n"
    return parse_policy(
        f"""
policy: boxes
steward: ana
population: people
source: {{path: people.csv}}
person: each-row
releases: once
protect: {{method: k-epsilon, grouping: ola, k: {k}, epsilon: 1}}
columns:
  town: {{role: quasi, do: generalise, hierarchy: {{groups: [here, there]}}}}
  height: {{role: quasi, do: noise, domain: [-10, 20], grid: 1, outside: clamp, missing: fail, why: test}}
{weight if columns == 2 else ""}  illness: {{role: confidential, do: keep, values: [flu, mumps, none], why: test}}
suppress: {{{f"confidence: {confidence}, " if confidence else ""}grouping_at_most: 0%, at_most: 90%}}
review: {{reviewers: 1}}
""",
        name="boxes.yaml",
    )


def lay_out(chance: random.Random, columns: int, n: int) -> tuple[dict[str, pa.Table], pa.Table, list[int], list[Rows], Rows]:
    """What the stages before would have left: tables by name, the masked table, and the same in plain numbers."""
    group = [-1] * n
    while max(group) < 0:
        group = random_classes(chance, n, chance.randint(1, 3))
    grids = {"height": HEIGHT, "weight": WEIGHT} if columns == 2 else {"height": HEIGHT}
    spread = chance.choice([0, 2, 8])
    original = [[chance.randint(3, 3 + spread) for _ in grids] for _ in range(n)]
    scales = [[chance.choice([0, 1, 2, 5]) for _ in grids] for _ in range(max(group) + 1)]
    noisy = [
        [
            min(max(x + (chance.randint(-4, 4) if scales[g][a] and g >= 0 else 0), 0), grid.width)
            for a, (x, grid) in enumerate(cells)
        ]
        for g, cells in zip(group, (zip(row, grids.values(), strict=True) for row in original), strict=True)
    ]
    illness = [chance.choice(ILLNESSES) for _ in range(n)]
    order = [i for i in chance.sample(range(n), n) if group[i] >= 0]

    def restore(rows: Rows, a: int, grid: Grid) -> pa.Array:
        return pa.array(grid.restore(np.array([float(row[a]) for row in rows])))

    tables = {
        "records": pa.table(
            {name: restore(original, a, grid) for a, (name, grid) in enumerate(grids.items())} | {"illness": pa.array(illness)}
        ),
        "membership": pa.table({CLASS: pa.array(group, pa.int32())}),
        "statistics": pa.table(
            {
                "column_name": pa.array([name for name in grids for _ in scales]),
                "scale": pa.array([row[a] for a in range(len(grids)) for row in scales], pa.int64()),
            }
        ),
    }
    masked = pa.table(
        {
            RECORD: pa.array(order, pa.int64()),
            CLASS: pa.array([group[i] for i in order], pa.int64()),
            "town": pa.array([f"town {group[i]}" for i in order]),
        }
        | {name: restore([noisy[i] for i in order], a, grid) for a, (name, grid) in enumerate(grids.items())}
        | {"illness": pa.array([illness[i] for i in order])}
    )
    return tables, masked, group, [original, noisy], scales


@pytest.mark.parametrize("seed", range(30))
def test_suppression_is_that_of_all_pairs(seed: int) -> None:
    """The stage as a whole: boxes at c^(1/m) around what is released, then classes of fewer than k; all counted."""
    chance = random.Random(seed)  # noqa: S311
    columns, k = 1 + seed % 2, chance.choice([2, 3, 4])
    confidence = chance.choice([None, "30%", "50%", "90%"])
    tables, masked, group, (original, noisy), scales = lay_out(chance, columns, chance.randint(5, 25))
    policy = make_policy(columns, k, confidence)
    assert isinstance(policy.protect, KEpsilonOptions)
    strategy, read = ClassStrategy(policy), read_tables(tables)
    exposed = [False] * len(group)
    if confidence is not None:
        share = Decimal(confidence[:-1]) / 100
        widths = [[width_by_hand(t, share, columns) for t in row] for row in scales]
        exposed = exposed_by_hand(original, noisy, group, widths, k)
    kept = [g >= 0 and not out for g, out in zip(group, exposed, strict=True)]
    small = small_by_hand(group, kept, k)
    left = [i for i in masked.column(RECORD).to_pylist() if kept[i] and not small[i]]

    done = strategy.suppress(read, masked)
    assert done.table.column(RECORD).to_pylist() == left
    assert list(done.table.column_names) == masked.column_names
    assert done.figures == {"grouping": group.count(-1), "confidence": sum(exposed), "classes_left_too_small": sum(small)}
    assert (done.dropped, done.share) == (len(group) - len(left), (len(group) - len(left)) / len(group))
    assert done.anonymity == (min(sum(group[j] == group[i] for j in left) for i in left) if left else None)
    assert bool(done.refusal) == (len(group) - len(left) > Decimal("0.9") * len(group))


def list_outcomes(original: list[int], t: int, grid: Grid, *, clamp: bool, patch: pytest.MonkeyPatch) -> list[dict[int, Decimal]]:
    """P[y | x] for each original x of one class: every draw z sent through `add_class_noise`, weighed by the law.

    Draws beyond reach are lumped together on either side; clamped, all of those come out at an end of the domain.
    """
    reach = grid.width + 3
    with localcontext() as context:
        context.prec = DIGITS
        q = (Decimal(-1) / t).exp() if t else Decimal(0)
        weight = {z: (1 - q) / (1 + q) * q ** abs(z) if z or t else Decimal(1) for z in range(-reach, reach + 1)}
        weight[-reach - 1] = weight[reach + 1] = q ** (reach + 1) / (1 + q)
        if not t:
            weight = {0: Decimal(1)}
        assert abs(sum(weight.values()) - 1) < ROUNDING
        found: list[dict[int, Decimal]] = [{} for _ in original]
        group, numbers = np.zeros(len(original), dtype=np.int64), np.array(original)
        for z, mass in weight.items():
            patch.setattr(class_noise, "discrete_laplace", lambda scales, stream, z=z: np.where(scales == t, z, 10**9))
            released = add_class_noise(numbers, group, np.array([t]), grid, secret=bytes(32), context=(), clamp=clamp)
            if not clamp and abs(z) > reach:
                continue  # outcomes that lie further out than the list goes
            for of_x, y in zip(found, released.tolist(), strict=True):
                of_x[y] = of_x.get(y, Decimal(0)) + mass
        return found


def worst_ratio(found: list[dict[int, Decimal]], outcomes: range) -> Decimal:
    """The largest P[y | x] / P[y | x'] of any two originals and any of these outcomes."""
    with localcontext() as context:
        context.prec = DIGITS
        pairs = permutations(found, 2)
        ratios = [a[y] / b[y] if y in b else Decimal("Infinity") for a, b in pairs for y in outcomes if y in a]
        return max(ratios, default=Decimal(1))


CLASSES = [[0, 9], [4, 4, 4], [0, 3, 3, 7, 9]]
EPSILONS = ["0.1", "1", "8"]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("original", CLASSES, ids=str)
@pytest.mark.parametrize("clamp", [True, False])
def test_no_number_tells_records_of_a_class_apart_by_more_than_epsilon(
    original: list[int], epsilon: str, clamp: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P[y | x] <= e^eps P[y | x'] for all x, x' and y; and the next smaller scale would break it, if it is above 0."""
    grid = Grid.declare((0, 9), 1)
    declared = Epsilon.of(epsilon)
    (t,) = class_scales(np.array(original), np.zeros(len(original), dtype=np.int64), declared).tolist()
    diameter = max(original) - min(original)
    outcomes = range(10) if clamp else range(-3, 13)
    with localcontext() as context:
        context.prec = DIGITS
        limit = Decimal(epsilon).exp() * (1 + ROUNDING)
        worst = worst_ratio(list_outcomes(original, t, grid, clamp=clamp, patch=monkeypatch), outcomes)
        assert worst <= limit
        exact = (Decimal(diameter) / t).exp() if t else Decimal(1)
        assert abs(worst / exact - 1) < ROUNDING  # the bound of the docstring is reached, by the ends of the class
    if t > 1:
        less = list_outcomes(original, t - 1, grid, clamp=clamp, patch=monkeypatch)
        assert worst_ratio(less, outcomes) > limit


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("weights", [(1, 1), (3, 1)])
def test_two_columns_share_epsilon(epsilon: str, weights: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Independent noise in each, epsilon split: no pair of numbers tells two records apart by more than epsilon in all.

    Unsplit, it does: the records differ most in both columns at once. The classes are small domains with all corners in use.
    """
    grid, declared = Grid.declare((0, 5), 1), Epsilon.of(epsilon)
    records = [(0, 5), (5, 0), (2, 2), (0, 0)]
    shares = declared.split(weights)
    assert sum(share.nano for share in shares) == declared.nano

    def loss(parts: Sequence[Epsilon]) -> Decimal:
        outcomes: list[list[dict[int, Decimal]]] = []
        for column, part in zip(zip(*records, strict=True), parts, strict=True):
            (t,) = class_scales(np.array(column), np.zeros(4, dtype=np.int64), part).tolist()
            outcomes.append(list_outcomes(list(column), t, grid, clamp=True, patch=monkeypatch))
        first, second = outcomes
        joint = [{(6 * y + z): a[y] * b[z] for y in a for z in b} for a, b in zip(first, second, strict=True)]
        return worst_ratio(joint, range(36))

    with localcontext() as context:
        context.prec = DIGITS
        limit = Decimal(epsilon).exp() * (1 + ROUNDING)
        assert loss(shares) <= limit
        assert loss((declared, declared)) > limit


def test_matching_a_whole_class_is_bounded_by_twice_epsilon() -> None:
    """Exchanging two people changes two factors: over all outcomes of two rows of {0, 10} at epsilon 1 the odds reach e^2 and
    pass it nowhere; one row alone keeps e^1. What the card says of whoever knows all people of a class."""
    t, reach = 10, 60
    outcomes = range(-reach, 10 + reach)

    def weight(y: int, x: int) -> float:
        return -abs(y - x) / t

    pairs = max(
        weight(first, 0) + weight(second, 10) - weight(first, 10) - weight(second, 0) for first in outcomes for second in outcomes
    )
    alone = max(weight(y, 0) - weight(y, 10) for y in outcomes)
    assert alone == pytest.approx(1)
    assert pairs == pytest.approx(2)


def outcomes_of(original: list[int], t: int, w: int, width: int | None) -> list[dict[int, float]]:
    """P[y | x] for each original; y from beyond every box to beyond every box, where those further out are like the last ones. In
    a domain 0..width what lies beyond is at its ends."""
    q = math.exp(-1 / t)
    low, high = (min(original) - w - 1, max(original) + w + 1) if width is None else (0, width)

    def chance(y: int, x: int) -> float:
        if width is not None and y in (low, high):
            return q ** abs(y - x) / (1 + q)  # that much and more
        return (1 - q) / (1 + q) * q ** abs(y - x)

    return [{y: chance(y, x) for y in range(low, high + 1)} for x in original]


def left_alone(chances: list[float], own: int, k: int) -> float:
    """P[A_x]: of the others as many pass the first rule, each on its own, that with x the class passes the second: k records. By
    every subset of the others, joined where their number is the same."""
    states = {1: 1.0}
    for other, p in enumerate(chances):
        if other == own:
            continue
        following: dict[int, float] = {}
        for count, mass in states.items():
            for state, part in ((count, 1 - p), (count + 1, p)):
                following[state] = following.get(state, 0.0) + mass * part
        states = following
    return sum(mass for count, mass in states.items() if count >= k)


def both_rules(
    original: list[int],
    k: int,
    confidence: str,
    epsilon: str,
    *,
    width: int | None = None,
) -> tuple[dict[str, float], list[float], list[float]]:
    """The largest logarithm of the ratio between two records of a class, over all outcomes: `jointly` kept and released so,
    the event of being dropped (`dropped`), and `given` that a record was kept. Beside them P[K_x] and P[A_x] of each."""
    (t,) = class_scales(np.array(original), np.zeros(len(original), np.int64), Epsilon.of(epsilon)).tolist()
    w = standing_out.confidence_width(t, Decimal(confidence), 1)
    found = outcomes_of(original, t, w, width)
    kept = [y for y in found[0] if not 0 < sum(abs(y - x) <= w for x in original) < k]
    passes = [1 - sum(mass for y, mass in of_x.items() if y not in set(kept)) for of_x in found]
    if width is not None:  # all outcomes are listed; without the rounding of 1 minus nearly 1
        passes = [sum(of_x[y] for y in kept) for of_x in found]
    left = [left_alone(passes, own, k) for own in range(len(original))]
    worst = {"jointly": 0.0, "dropped": 0.0, "given": 0.0}
    for i, j in permutations(range(len(original)), 2):
        if not kept or min(left[i], left[j]) == 0:
            continue
        number = max(math.log(found[i][y] / found[j][y]) for y in kept)
        jointly = number + math.log(left[i] / left[j])
        worst["jointly"] = max(worst["jointly"], jointly)
        worst["given"] = max(worst["given"], number + math.log(passes[j] / passes[i]))
        gone = [1 - passes[place] * left[place] for place in (i, j)]
        if min(gone) > 1e-6:
            worst["dropped"] = max(worst["dropped"], math.log(gone[0] / gone[1]))
    return worst, passes, left


SLACK = 1e-7  # of sums of floating-point numbers


def test_kept_and_released_so_is_not_within_epsilon() -> None:
    """The counterexample of the docstring: whether the class keeps 7 of its 8 depends on the noise of the others."""
    worst, _, _ = both_rules([0] * 6 + [3, 10], 7, "0.7", "2")
    assert worst["jointly"] == pytest.approx(2.369, abs=5e-4)
    assert 2 < worst["jointly"] < class_noise.KEPT * 2


@pytest.mark.parametrize("clamped", [False, True])
def test_kept_and_released_so_is_within_twice_epsilon(clamped: bool) -> None:
    """Random classes with k near their size, where it matters: hundreds break e^eps, and none e^(2 eps); being dropped likewise,
    and a number given that its record was kept."""
    chance = random.Random(17)  # noqa: S311
    above = 0
    for _ in range(1500):
        n = chance.randint(3, 9)
        k = chance.randint(max(2, n - 2), n)
        original = [chance.choice([0, 0, chance.randint(0, 14)]) for _ in range(n)]
        if len(set(original)) == 1:
            continue
        confidence, epsilon = chance.choice(["0.1", "0.3", "0.5", "0.7", "0.9"]), chance.choice(["0.5", "1", "2", "4"])
        worst, _, _ = both_rules(original, k, confidence, epsilon, width=14 if clamped else None)
        above += worst["jointly"] > float(epsilon) + SLACK
        assert max(worst["jointly"], worst["dropped"], worst["given"]) <= class_noise.KEPT * float(epsilon) + SLACK
    assert above > 150


def test_given_that_a_record_was_kept_the_factor_can_be_above_epsilon() -> None:
    """The counterexample of docs/mechanisms.md: class {0, 10, 10, 10}, k 3, confidence 50%, epsilon 1. The second rule cancels in
    it, and not in the joint event."""
    worst, _, _ = both_rules([0, 10, 10, 10], 3, "0.5", "1")
    assert 1.3 < worst["given"] < 1.32
    assert 1 < worst["jointly"] <= 2
