"""What one changed record moves along an order: the accountant of chains, its calibration and the public bounds against brute
force over all records and all new records, in exact fractions; amplification and random parts by enumeration."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from release_pipeline.mechanisms import Epsilon, Grid, noise_stream, order_clusters, order_keys
from release_pipeline.mechanisms.accounting.budget import NANO
from release_pipeline.mechanisms.clusters.curve import cell_reach, curve_depth
from release_pipeline.mechanisms.clusters.rank import OrderClusters, cut_ranks, draw_parts
from release_pipeline.mechanisms.vectors import chains
from release_pipeline.mechanisms.vectors.chains import (
    Extremes,
    Neighbours,
    calibrate_table,
    find_extremes,
    find_neighbours,
    order_reach,
    reach_scales,
    table_loss,
)
from release_pipeline.mechanisms.vectors.vectors import Insensitive, Order, Statistic, VectorScope, compute_vectors
from release_pipeline.policy import parse_policy
from release_pipeline.policy.plans.loss import wider_bound
from tests.oracles import plain_vectors
from tests.oracles.plain_vectors import Record

SECRET = bytes(range(32))
ORDERS: tuple[Order, ...] = ("corner", "hilbert")
STATISTICS: tuple[Statistic, ...] = ("plain", "trimmed")
KINDS = ("spread", "ties", "along the axes", "outlier", "constant")
SHAPES = [(6,), (5, 3), (2, 6), (2, 1, 2)]  # widths


@pytest.fixture(autouse=True)
def few_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of these small tables, too, what records do to their own clusters is found a few records at a time."""
    monkeypatch.setattr(chains, "_TOGETHER", 7)


class _Case:
    """A table, how it is masked, and the order's key of every record that there can be."""

    def __init__(self, chance: random.Random, widths: Sequence[int], k: int, kind: str, order: Order) -> None:
        self.widths, self.k, self.order = tuple(widths), k, order
        self.every = plain_vectors.all_records(widths)
        keys = order_keys(self.every, widths, order).tolist()
        self.key = dict(zip(self.every, keys, strict=True)).__getitem__
        self.records = _draw_table(chance, self.widths, chance.randint(2 * k, 3 * k + 2), kind)
        weights = [chance.choice((1, 1, 2, 5)) for _ in widths]
        self.epsilons = Epsilon.of(chance.choice(("0.3", "1", "7.1"))).split(weights)

    def spec(self, statistic: Statistic, scope: VectorScope) -> Insensitive:
        return Insensitive(self.epsilons, self.k, self.order, statistic, scope)

    def clusters(self) -> OrderClusters:
        return order_clusters(np.array(self.records), self.widths, self.k, order=self.order)

    def neighbours(self, statistic: Statistic) -> Neighbours:
        clusters = self.clusters()
        ordered = np.array(self.records)[clusters.order]
        extremes = find_extremes(ordered, clusters) if statistic == "trimmed" else None
        return find_neighbours(ordered, clusters, np.array(self.widths), extremes)

    def masked(self, statistic: Statistic, scope: VectorScope) -> tuple[npt.NDArray[np.int64], float]:
        """Scales, by clusters and columns, and the loss that is noted."""
        grids = [Grid.declare((0, width), 1) for width in self.widths]
        parts = compute_vectors(np.array(self.records), grids=grids, spec=self.spec(statistic, scope), secret=SECRET, context=())
        return np.stack([part.scale for part in parts], axis=1), parts[0].loss["table"]

    def losses(self, statistic: Statistic, scales: npt.NDArray[np.int64]) -> tuple[Fraction, Fraction]:
        trimmed = statistic == "trimmed"
        return plain_vectors.losses(self.records, self.every, self.key, scales.tolist(), self.k, trimmed=trimmed)


def _draw_table(chance: random.Random, widths: tuple[int, ...], n: int, kind: str) -> list[Record]:
    def anywhere() -> Record:
        return tuple(chance.randint(0, width) for width in widths)

    def axis(place: int) -> Record:
        lit = place % len(widths)
        return tuple(width if column == lit else chance.randint(0, 1) for column, width in enumerate(widths))

    few = [anywhere() for _ in range(3)]
    make = {
        "spread": lambda place: anywhere(),
        "ties": lambda place: chance.choice(few),
        "along the axes": axis,  # steps of an order by distance are as long as the domain
        "outlier": lambda place: widths if place == 0 else few[0],
        "constant": lambda place: few[0],
    }[kind]
    return [make(place) for place in range(n)]


def _cases(seed: str, order: Order, statistic: Statistic, shapes: Sequence[Sequence[int]] = SHAPES) -> Iterator[_Case]:
    chance = random.Random(seed)  # noqa: S311
    for widths, kind in product(shapes, KINDS):
        for k in (3, 4) if statistic == "trimmed" else (1, 2, 4):
            yield _Case(chance, widths, k, kind, order)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("order", ORDERS)
def test_statistics_equal_the_plain_ones(order: Order, statistic: Statistic) -> None:
    """Sums of every cluster and column, over the clusters that `sorted` makes."""
    for case in _cases(f"sums {order}", order, statistic):
        grids = [Grid.declare((0, width), 1) for width in case.widths]
        parts = compute_vectors(
            np.array(case.records), grids=grids, spec=case.spec(statistic, "table"), secret=SECRET, context=()
        )
        plain = plain_vectors.sums_of(case.records, case.key, case.k, trimmed=statistic == "trimmed")
        assert np.stack([part.statistic for part in parts], axis=1).tolist() == plain
        members = [[case.records[i] for i in np.flatnonzero(parts[0].cluster == j)] for j in range(len(plain))]
        wanted = plain_vectors.clusters_of(case.records, case.key, case.k)
        assert [sorted(cluster) for cluster in members] == [sorted(cluster) for cluster in wanted]


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_table_claim_holds_against_every_neighbour(order: Order, statistic: Statistic) -> None:
    """True loss <= the accountant's <= epsilon at scope table; for plain sums the noted one is the lesser of two bounds."""
    seen = Fraction(0)
    for case in _cases(f"table {order}", order, statistic):
        scales, noted = case.masked(statistic, "table")
        epsilon = case.spec(statistic, "table").epsilon.fraction
        _, truth = case.losses(statistic, scales)
        bound = table_loss(case.neighbours(statistic), scales)
        assert truth <= bound
        assert truth <= epsilon
        assert float(truth) <= noted <= float(min(epsilon, bound))
        if statistic == "trimmed":
            assert bound <= epsilon
        seen = max(seen, truth / epsilon)
    assert seen > Fraction(3, 5)  # so the tables do come near


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("order", ORDERS)
def test_the_accountant_is_never_below_the_truth_for_any_scales(order: Order, statistic: Statistic) -> None:
    """Scales as they come, 0 included: a change without noise is an infinite loss."""
    chance = random.Random(f"any {order}")  # noqa: S311
    infinite = 0
    for case in _cases(f"scales {order}", order, statistic):
        count = len(case.records) // case.k
        least = chance.choice((0, 1, 1))
        scales = np.array([[chance.randint(least, 9) for _ in case.widths] for _ in range(count)], dtype=np.int64)
        _, truth = case.losses(statistic, scales)
        bound = table_loss(case.neighbours(statistic), scales)
        assert truth <= bound if truth < plain_vectors.INFINITE else bound == np.inf
        infinite += bound == np.inf
    assert infinite


@pytest.mark.parametrize("order", ORDERS)
def test_for_one_trimmed_column_the_accountant_is_the_truth(order: Order) -> None:
    """Equal as fractions, but for ratios that are rounded up to 2^-50 or finer."""
    chance = random.Random(f"one {order}")  # noqa: S311
    for kind, k, width in product(KINDS, (3, 4, 5), (1, 4, 6)):
        case = _Case(chance, (width,), k, kind, order)
        scales = np.array([[chance.randint(1, 50)] for _ in range(len(case.records) // k)], dtype=np.int64)
        _, truth = case.losses("trimmed", scales)
        found = table_loss(case.neighbours("trimmed"), scales)
        assert truth <= found <= truth + Fraction(len(scales), 1 << 50)


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("order", ORDERS)
def test_a_centroid_claim_holds_and_the_public_bound_covers_the_table(order: Order, statistic: Statistic) -> None:
    """One centroid with all its columns: at most epsilon. All centroids: at most what the ledger would charge."""
    for case in _cases(f"centroid {order}", order, statistic):
        scales, noted = case.masked(statistic, "centroid")
        spec = case.spec(statistic, "centroid")
        centroid, truth = case.losses(statistic, scales)
        assert centroid <= spec.epsilon.fraction
        assert float(truth) <= noted
        noise = "".join(
            f"  c{i}: {{role: confidential, do: noise, domain: [0, {width}], grid: 1, outside: clamp, why: known}}\n"
            for i, width in enumerate(case.widths)
        )
        weights = ", ".join(f"c{i}: {part.nano}" for i, part in enumerate(case.epsilons))
        policy = parse_policy(
            "policy: people\nsteward: ana\npopulation: people\nsource: {path: people.csv}\nreleases: once\n"
            f"person: {{column: id}}\nprotect: {{method: dp-mdav, epsilon: {spec.epsilon}, k: {case.k}, order: {order}, "
            f"statistic: {statistic}, scope: centroid{f', weights: {{{weights}}}' if len(case.widths) > 1 else ''}}}\n"
            f"columns:\n  id: {{role: identifier, do: drop}}\n{noise}",
            name="p.yaml",
        )
        assert policy.vectors == spec
        charged = wider_bound(policy, policy.epsilon or 0, records=len(case.records))
        assert truth <= Fraction(charged, NANO)


def _longest_chain(widths: Sequence[int], weights: Sequence[Fraction], order: Order, steps: int) -> tuple[float, list[Record]]:
    """The exact maximum of sum_j sum_a w_a |change of sum j| / W_a over all tables of `steps` single records or of clusters, and
    the records that reach it.

    A chain moves along points q_0 <= q_1 <= .. <= q_p of the order, and cluster j changes by q_{j+1} - q_j: the longest walk that
    never turns back, over all records that there can be. `steps` clusters of copies of q_0 .. q_{p-1}, one of which becomes q_p.
    """
    every = np.array(plain_vectors.all_records(widths))
    keys = order_keys(every, widths, order)
    ordered = every[np.lexsort((*every.T[::-1], keys))]
    scaled = ordered * np.array([float(w / width) for w, width in zip(weights, widths, strict=True)])
    length = np.abs(scaled[:, None, :] - scaled[None, :, :]).sum(axis=2)  # to, from
    length[np.triu_indices(len(ordered), 1)] = -np.inf  # never back
    best = np.zeros(len(ordered))
    came: list[npt.NDArray[np.intp]] = []
    for _ in range(steps):
        total = length + best[None, :]
        came.append(total.argmax(axis=1))
        best = total.max(axis=1)
    place = int(best.argmax())
    path = [place]
    for before in reversed(came):
        path.append(place := int(before[place]))
    return float(best.max()), [tuple(record) for record in ordered[path[::-1]].tolist()]


REACHES = [(15,), (63,), (15, 15), (6, 15), (20, 9), (7, 7, 7), (3, 7, 5)]


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 3, 2)])
@pytest.mark.parametrize("widths", REACHES)
@pytest.mark.parametrize("order", ORDERS)
def test_no_chain_is_longer_than_the_reach(order: Order, widths: tuple[int, ...], weights: tuple[int, ...]) -> None:
    """The longest chain of all tables in 1 to 60 clusters, by dynamic programming; and the reach is never above p sum w."""
    shares = [Fraction(weight, sum(weights[: len(widths)])) for weight in weights[: len(widths)]]
    for count in (1, 2, 3, 4, 7, 12, 25, 60):
        longest, path = _longest_chain(widths, shares, order, count)
        reach = order_reach(widths, shares, count, order=order)
        assert longest <= float(reach) * (1 + 1e-12)
        assert reach <= count * sum(shares)
        walked = sum(
            (w * abs(x - y) / width for one, other in pairwise(path)
             for w, width, x, y in zip(shares, widths, one, other, strict=True)), Fraction(0)
        )  # fmt: skip
        assert walked == pytest.approx(longest)
        assert walked <= reach
        _check_that_a_table_walks(widths, order, path, shares, walked)


def _check_that_a_table_walks(
    widths: tuple[int, ...],
    order: Order,
    path: list[Record],
    weights: list[Fraction],
    walked: Fraction,
) -> None:
    """The chain is that of a real neighbour: two copies of each point but the last; one of the first ones becomes the last."""
    table = [record for record in path[:-1] for _ in range(2)]
    sums: list[npt.NDArray[np.int64]] = []
    for version in (table, [path[-1], *table[1:]]):
        found = order_clusters(np.array(version), widths, 2, order=order)
        sums.append(np.add.reduceat(np.array(version)[found.order], found.start, axis=0))
    changes = np.abs(sums[1] - sums[0]).sum(axis=0).tolist()
    assert sum((w * c / width for w, c, width in zip(weights, changes, widths, strict=True)), Fraction(0)) == walked
    epsilon = Epsilon.of("0.7")
    scales = reach_scales(widths, weights, order_reach(widths, weights, len(path) - 1, order=order), epsilon)
    assert sum((Fraction(c, t) for c, t in zip(changes, scales, strict=True)), Fraction(0)) <= epsilon.fraction


def test_known_answers_of_the_reach() -> None:
    """m = 2, p = 50: (4^l - 1 + 100) / 2^l is least at l = 3, (63 + 100) / 8; for one column near 1; by the corner p sum w."""
    one = [Fraction(1)]
    assert order_reach([100, 100], one * 2, 50, order="hilbert") == Fraction(163, 8)
    assert order_reach([100, 100], one * 2, 50, order="corner") == 100
    assert order_reach([1000], one, 50, order="hilbert") == 1 + Fraction(49, 1 << 10)
    assert order_reach([1, 1], one * 2, 3, order="hilbert") == Fraction(9, 2)


@pytest.mark.parametrize("width", [1, 6, 63, 100, 1000])
def test_no_two_values_are_further_apart_than_their_cells_say(width: int) -> None:
    """|q - q'| <= (d + 1) x for all pairs of values, whose cells of a level are d apart, by the keys of one column."""
    values = np.arange(width + 1)
    keys = order_keys(values[:, None], [width], "hilbert").astype(np.int64)
    depth = curve_depth([width])
    for level in range(min(depth, 12) + 1):
        cell = keys >> (depth - level)
        x = cell_reach(width, level)
        apart = np.abs(values[:, None] - values[None, :])
        allowed = (np.abs(cell[:, None] - cell[None, :]) + 1) * float(x)
        assert np.all(apart <= allowed * (1 + 1e-12))


def test_extremes_and_their_changes_equal_those_of_sorted_lists() -> None:
    """Every cluster of 3 to 7, every member lost and every value gained, columns at once."""
    chance = random.Random(3)  # noqa: S311
    for _ in range(150):
        k, width = chance.choice((3, 3, 4, 5, 6)), chance.choice((1, 4, 9))
        n = chance.randint(k, 4 * k)
        rows = [[chance.randint(0, width), chance.choice((0, 2, width))] for _ in range(n)]
        start, size = cut_ranks(n, k)
        found = find_extremes(np.array(rows), OrderClusters(np.arange(n), start, size))
        for j, (first, count) in enumerate(zip(start.tolist(), size.tolist(), strict=True)):
            cluster = rows[first : first + count]
            for column in range(2):
                values = sorted(row[column] for row in cluster)
                assert int(found.total[j, column]) == sum(values)
                assert [int(part[j, column]) for part in found.low] == values[:3]
                assert [int(part[j, column]) for part in found.high] == values[:-4:-1]
                assert int(found.trimmed[j, column]) == plain_vectors.trimmed_sum(values)
                worst = max(_check_changes(found, j, column, values, lost, width) for lost in set(values))
                beyond = max(  # D holds whatever the domain is
                    abs(plain_vectors.trimmed_sum([*_without(values, lost), gained]) - plain_vectors.trimmed_sum(values))
                    for lost in values
                    for gained in (-9 * width, 9 * width)
                )
                assert worst <= beyond == int(found.moves[j, column])


def _check_changes(found: Extremes, j: int, column: int, values: list[int], lost: int, width: int) -> int:
    worst = 0
    for gained in range(width + 1):
        change = found.of(slice(j, j + 1)).change(np.array([[lost, lost]]), np.array([[gained, gained]]))
        after = plain_vectors.trimmed_sum([*_without(values, lost), gained])
        assert int(change[0, column]) == abs(after - plain_vectors.trimmed_sum(values))
        worst = max(worst, int(change[0, column]))
    return worst


def _without(values: list[int], lost: int) -> list[int]:
    place = values.index(lost)
    return values[:place] + values[place + 1 :]


@pytest.mark.parametrize("kind", ["spread", "heavy tail", "ties"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("epsilon", ["0.05", "1", "9.7"])
def test_calibration_uses_epsilon_up(order: Order, kind: str, epsilon: str) -> None:
    """The verified loss is at most epsilon, and at least 99% of it, on thousands of records with unequal weights."""
    rng = np.random.default_rng(11)
    widths = [10**6, 10**5, 3 * 10**6]
    shares = {"spread": rng.random((3000, 3)), "heavy tail": np.minimum(rng.pareto(0.8, (3000, 3)) / 1e3, 1),
              "ties": np.rint(rng.random((3000, 3)) * 7) / 7}[kind]  # fmt: skip
    table = np.rint(shares * widths).astype(np.int64)
    clusters = order_clusters(table, widths, 11, order=order)
    ordered = table[clusters.order]
    extremes = find_extremes(ordered, clusters)
    neighbours = find_neighbours(ordered, clusters, np.array(widths), extremes)
    budget = Epsilon.of(epsilon)
    weights = [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
    scales = calibrate_table(neighbours, extremes.moves, np.array(widths), weights, budget)
    found = table_loss(neighbours, scales)
    assert Fraction(99, 100) * budget.fraction <= found <= budget.fraction
    assert np.array_equal(scales == 0, extremes.moves == 0)


def test_calibration_of_equal_records_needs_no_noise() -> None:
    """No single change moves a trimmed sum of equal values."""
    table = np.full((20, 2), 3)
    clusters = order_clusters(table, [9, 9], 5, order="hilbert")
    extremes = find_extremes(table, clusters)
    neighbours = find_neighbours(table, clusters, np.array([9, 9]), extremes)
    scales = calibrate_table(neighbours, extremes.moves, np.array([9, 9]), [Fraction(1, 2)] * 2, Epsilon.of(1))
    assert not scales.any()
    assert table_loss(neighbours, scales) == 0


@pytest.mark.parametrize(("slots", "parts"), [(12, 3), (10, 3), (7, 7), (5, 1), (11, 4)])
def test_parts_are_even_and_every_slot_is_as_often_in_each(slots: int, parts: int) -> None:
    """Sizes differ by at most one; over 4,000 secrets each slot falls into each part, and each pair into the same, as often as
    sizes say."""
    secrets = 4000
    drawn = np.array([draw_parts(slots, parts, noise_stream(seed.to_bytes(32, "big"), "parts")) for seed in range(secrets)])
    sizes = np.bincount(drawn[0], minlength=parts)
    assert sizes.max() - sizes.min() <= 1
    assert all(np.array_equal(np.bincount(row, minlength=parts), sizes) for row in drawn)
    if parts == 1:
        return
    expected = secrets * sizes / slots
    for slot in range(slots):
        assert stats.chisquare(np.bincount(drawn[:, slot], minlength=parts), expected).pvalue > 1e-5
    together = float((sizes * (sizes - 1)).sum()) / (slots * (slots - 1))
    for one, other in combinations(range(slots), 2):
        met = int(np.count_nonzero(drawn[:, one] == drawn[:, other]))
        assert (met == 0) if together == 0 else stats.binomtest(met, secrets, together).pvalue > 1e-6


def test_parts_of_the_same_stream_are_the_same_and_others_are_not() -> None:
    """The parts are a function of the secret and of two numbers: there is nothing else for them to depend on."""
    one, again, other = (draw_parts(50, 5, noise_stream(bytes([seed]) * 32, "parts")) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
