"""Keys, clusters and reach of the orders of records, against plain Python integers and by enumeration."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.privacy import (
    cell_reach,
    clusters,
    curve,
    curve_depth,
    noise_stream,
    order_clusters,
    order_keys,
    rank_clusters,
)

WIDE = 2**52
SECRET = bytes(range(32))


def cell(q: int, width: int, level: int) -> int:
    return min(q * 2**level // width, 2**level - 1)


def corner_key(row: Sequence[int], widths: Sequence[int]) -> int:
    m, s = len(row), 0
    while m * 4 ** (s + 1) < 2**64:
        s += 1
    return sum((q * 2**s // width) ** 2 for q, width in zip(row, widths, strict=True))


def random_rows(chance: random.Random, widths: Sequence[int], n: int) -> list[list[int]]:
    """Ends, their neighbours, powers of two and anything between."""

    def draw(width: int) -> int:
        near = [0, 1, width - 1, width, width // 2, 2 ** chance.randrange(53) - 1, 2 ** chance.randrange(53)]
        return min(chance.choice([*near, chance.randint(0, width)]), width)

    return [[draw(width) for width in widths] for _ in range(n)]


@pytest.mark.parametrize(
    ("m", "depth"),
    [(1, 9), (2, 1), (2, 2), (2, 3), (2, 6), (3, 1), (3, 2), (3, 4), (4, 3), (5, 2), (6, 2), (7, 2), (8, 1), (9, 1), (12, 1)],
)
def test_the_curve_visits_every_cell_once_and_touches_from_one_to_the_next(m: int, depth: int) -> None:
    """By enumeration: at every level, each cell has its place, and consecutive ones differ by 1 in one coordinate."""
    width = 2**depth - 1  # so that the cells are the values
    cells = np.array(list(product(range(2**depth), repeat=m)))
    keys = order_keys(cells, [width] * m, "hilbert")
    assert curve_depth([width] * m) == depth
    for level in range(1, depth + 1):
        coarse = np.unique(np.column_stack([keys >> np.uint64(m * (depth - level)), cells >> (depth - level)]), axis=0)
        assert coarse[:, 0].tolist() == list(range(2 ** (m * level)))  # one place per cell, one cell per place
        assert np.all(np.abs(np.diff(coarse[:, 1:].astype(np.int64), axis=0)).sum(axis=1) == 1)


@pytest.mark.parametrize(
    ("m", "depth"), [(2, 32), (3, 21), (4, 16), (5, 12), (6, 10), (7, 9), (9, 7), (12, 5), (13, 4), (32, 2), (64, 1)]
)
def test_deep_curves_touch_at_every_level(m: int, depth: int) -> None:
    """The cells at random places and at the ones after them, found by going down the curve digit by digit."""
    chance = random.Random(m)  # noqa: S311
    width = 2**52 - 1
    assert curve_depth([width] * m) == depth

    def cells_at(place: int, level: int) -> list[int]:
        """The cells of `level` at this place: of each level the one child of 2^m that has the right digit, found bit by bit."""
        found = [0] * m
        for done in range(1, level + 1):
            wanted = place >> (m * (level - done)) & (2**m - 1)
            if m <= 7:
                children = [[2 * c + (bits >> a & 1) for a, c in enumerate(found)] for bits in range(2**m)]
                digits = (keys_of(children, done) & np.uint64(2**m - 1)).tolist()
                found = children[digits.index(wanted)]
                continue
            # the digit is linear over GF(2) in the bits of the cell: solve for the bits
            zero = [2 * c for c in found]
            units = [[c + (a == other) for a, c in enumerate(zero)] for other in range(m)]
            base, *images = (keys_of([zero, *units], done) & np.uint64(2**m - 1)).tolist()
            found = [c + bit for c, bit in zip(zero, solve(wanted ^ base, [image ^ base for image in images]), strict=True)]
        return found

    def keys_of(cells: list[list[int]], level: int) -> Any:
        # the middle of each cell of that level, where the key's high bits are its place
        lifted = [[min(-(-c * width // 2**level) + 1, width) for c in row] for row in cells]
        return order_keys(lifted, [width] * m, "hilbert") >> np.uint64(m * (depth - level))

    for _ in range(12):
        level = chance.randint(1, depth)
        place = chance.randrange(2 ** (m * level) - 1)
        if chance.random() < 0.5:  # across a boundary of a coarser level
            rest = m * chance.randrange(level)
            place = max((place >> rest << rest) - 1, 0)
        one, other = cells_at(place, level), cells_at(place + 1, level)
        assert keys_of([one, other], level).tolist() == [place, place + 1]
        assert sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


def solve(wanted: int, images: list[int]) -> list[int]:
    """Bits whose images add up to `wanted`, over GF(2)."""
    basis: dict[int, tuple[int, int]] = {}
    for place, image in enumerate(images):
        used = 1 << place
        while image and image.bit_length() in basis:
            vector, names = basis[image.bit_length()]
            image, used = image ^ vector, used ^ names
        basis[image.bit_length()] = image, used
    chosen = 0
    while wanted:
        vector, names = basis[wanted.bit_length()]
        wanted, chosen = wanted ^ vector, chosen ^ names
    return [chosen >> place & 1 for place in range(len(images))]


def test_tables_and_level_by_level_walks_give_the_same_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the tables' size, none included."""
    chance = random.Random(5)  # noqa: S311
    for m in range(1, 9):
        widths = [chance.choice([1, 5, 1000, WIDE]) for _ in range(m - 1)] + [WIDE]
        rows = random_rows(chance, widths, 100)
        with monkeypatch.context() as patch:
            patch.setattr(curve, "_TABLE_BITS", 0)
            walked = order_keys(rows, widths, "hilbert").tolist()
        for bits in (8, 12, 16):
            monkeypatch.setattr(curve, "_TABLE_BITS", bits)
            assert order_keys(rows, widths, "hilbert").tolist() == walked


def test_with_one_column_the_curve_is_the_order_of_the_values() -> None:
    """The key is the cell, which never descends; and equal cells are told apart by the value."""
    chance = random.Random(1)  # noqa: S311
    for width in (1, 2, 3, 1000, 2**31, 2**40 + 1, WIDE):
        values = sorted({row[0] for row in random_rows(chance, [width], 500)})
        column = [[q] for q in values]
        depth = curve_depth([width])
        keys = order_keys(column, [width], "hilbert").tolist()
        assert keys == [cell(q, width, depth) for q in values]
        assert keys == sorted(keys)
        backwards = order_clusters(column[::-1], [width], 1, order="hilbert").order
        assert backwards.tolist() == list(range(len(values)))[::-1]


@pytest.mark.parametrize("m", [2, 4, 12])
def test_keys_are_those_of_the_exact_cells(m: int) -> None:
    """A record has the key of its cell vector, which is computed here in Python's integers and given as values of its own."""
    chance = random.Random(m)  # noqa: S311
    for _ in range(40):
        widths = [chance.choice([1, 3, 10**6, 2**40, WIDE - 1, WIDE, chance.randint(1, WIDE)]) for _ in range(m)]
        depth = curve_depth(widths)
        assert depth == min(32, 64 // m, max(widths).bit_length())
        rows = random_rows(chance, widths, 50)
        cells = [[cell(q, w, depth) for q, w in zip(row, widths, strict=True)] for row in rows]
        keys = order_keys(rows, widths, "hilbert")
        assert keys.tolist() == order_keys(cells, [2**depth - 1] * m, "hilbert").tolist()


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 12, 64, 100])
def test_corner_distances_are_exact(m: int) -> None:
    """The same as in Python's integers, the largest one included."""
    chance = random.Random(m)  # noqa: S311
    for _ in range(20):
        widths = [chance.choice([1, 3, 10**6, 2**32, WIDE - 1, WIDE, chance.randint(1, WIDE)]) for _ in range(m)]
        rows = [*random_rows(chance, widths, 50), widths]
        keys = order_keys(rows, widths, "corner").tolist()
        assert keys == [corner_key(row, widths) for row in rows]
        assert max(keys) == keys[-1] < 2**64


@pytest.mark.parametrize("order", ["corner", "hilbert"])
@pytest.mark.parametrize("secret", [None, SECRET])
def test_records_are_ordered_by_key_values_and_keyed_position(order: str, secret: bytes | None) -> None:
    """As Python sorts them: many equal, some with equal keys only, some whose keys differ in the lowest bits alone."""
    chance = random.Random(3)  # noqa: S311
    seen_collisions = False
    for _ in range(150):
        m, n = chance.randint(1, 5), chance.randint(1, 300)
        widths = [chance.choice([1, 2, 4, 30, 2**16 - 1, WIDE]) for _ in range(m)]
        near = chance.random() < 0.5
        rows = [[min(chance.choice([0, 1, 2, 3, w] if near else range(5)), w) for w in widths] for _ in range(n)]
        keys = order_keys(rows, widths, order).tolist()
        tie = [0] * n
        for place, record in enumerate(rank_clusters([0] * n, 1, ties=noise_stream(secret) if secret else None).order.tolist()):
            tie[record] = place
        k = chance.randint(1, n)
        ties = noise_stream(secret) if secret else None
        found = order_clusters(rows, widths, k, order=order, ties=ties)
        assert found.order.tolist() == sorted(range(n), key=lambda i: (keys[i], rows[i], tie[i]))
        assert found.size.tolist() == [k] * (n // k - 1) + [n - k * (n // k - 1)]
        assert found.start.tolist() == [k * j for j in range(n // k)]
        assert found.count == n // k
        assert found.cluster[found.order].tolist() == np.repeat(np.arange(n // k), found.size).tolist()
        by_key = sorted(zip(keys, rows, strict=True))
        seen_collisions |= any(one[0] == other[0] and one[1] != other[1] for one, other in pairwise(by_key))
    assert seen_collisions


def test_a_large_table_is_ordered_beyond_one_chunk() -> None:
    """Skewed records, whose keys agree in their high bits, and many equal ones."""
    rng = np.random.default_rng(1)
    rows = np.minimum(np.exp(rng.normal(6, 2, (100_000, 3))).astype(np.int64), 10**9)
    rows[::3] = rows[rng.integers(0, 50, len(rows[::3]))]
    for order in ("corner", "hilbert"):
        keys = order_keys(rows, [10**9] * 3, order)
        expected = np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0], keys))
        assert np.array_equal(order_clusters(rows, [10**9] * 3, 7, order=order).order, expected)


@pytest.mark.parametrize("order", ["corner", "hilbert"])
def test_a_key_depends_on_its_record_alone(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows alone and together, in any layout, type and chunk."""
    chance = random.Random(2)  # noqa: S311
    widths = [WIDE, 100, 3]
    rows = np.array(random_rows(chance, widths, 200))
    keys = order_keys(rows, widths, order)
    assert keys.dtype == np.uint64
    for row, key in zip(rows, keys.tolist(), strict=True):
        assert order_keys(row[np.newaxis], widths, order).tolist() == [key]
    for same in (np.asfortranarray(rows), rows.astype(np.uint64), np.repeat(rows, 2, axis=0)[::2]):
        assert np.array_equal(order_keys(same, widths, order), keys)
    monkeypatch.setattr(curve, "_CHUNK", 7)
    assert np.array_equal(order_keys(rows, widths, order), keys)
    assert order_keys(np.zeros((0, 3), dtype=np.int64), widths, order).tolist() == []


def test_no_two_values_are_further_apart_than_their_cells_say() -> None:
    """All pairs of all widths up to 40, all levels up to 8; and there is a pair that almost reaches it."""
    for width in range(1, 41):
        for level in range(9):
            x = cell_reach(width, level)
            cells = [cell(q, width, level) for q in range(width + 1)]
            apart: dict[int, int] = {}
            for one, other in product(range(width + 1), repeat=2):
                steps = abs(cells[one] - cells[other])
                apart[steps] = max(apart.get(steps, 0), abs(one - other))
            assert all(most <= (steps + 1) * x for steps, most in apart.items())
            assert x == Fraction(width, 2**level)
            assert apart[0] > x - 2


MATRIX = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"quantised": [1, 2]}, InvalidArgument),
        ({"quantised": np.zeros((2, 0), dtype=np.int64)}, InvalidArgument),
        ({"quantised": [[7321, 1]]}, InvalidArgument),
        ({"quantised": [[-7321, 1]]}, InvalidArgument),
        ({"quantised": np.array([[2**63, 1]], dtype=np.uint64)}, InvalidArgument),
        ({"quantised": [[0.5, 1.0]]}, InvalidType),
        ({"quantised": [[True, False]]}, InvalidType),
        ({"quantised": [["7321", "1"]]}, InvalidType),
        ({"quantised": np.ma.masked_array(MATRIX, mask=[[1, 0], [0, 0]])}, InvalidType),
        ({"widths": [9]}, InvalidArgument),
        ({"widths": [9, 9, 9]}, InvalidArgument),
        ({"widths": [9, 0]}, InvalidArgument),
        ({"widths": [9, WIDE + 1]}, InvalidArgument),
        ({"widths": [9, 9.0]}, InvalidType),
        ({"widths": [9, True]}, InvalidType),
        ({"order": "peano"}, InvalidArgument),
        ({"quantised": [[0] * 65], "widths": [9] * 65}, InvalidArgument),
    ],
)
def test_what_has_no_order_is_refused_in_words(changes: dict[str, Any], error: type[Exception]) -> None:
    """By both functions, without a value of the data."""
    given: dict[str, Any] = {"quantised": MATRIX, "widths": [9, 9], "order": "hilbert"} | changes
    with pytest.raises(error) as refused:
        order_keys(given.pop("quantised"), given.pop("widths"), given.pop("order"), **given)
    assert "7321" not in str(refused.value)
    given = {"quantised": MATRIX, "widths": [9, 9], "order": "hilbert"} | changes
    with pytest.raises(error):
        order_clusters(given.pop("quantised"), given.pop("widths"), 1, **given)


def test_numbers_of_records_and_levels_that_cannot_be_are_refused() -> None:
    """k below 1, fewer records than k, no such level."""
    for k in (0, -1, 3):
        with pytest.raises(InvalidArgument):
            order_clusters(MATRIX, [9, 9], k, order="hilbert")
    for width, level in ((9, -1), (9, 33), (0, 1)):
        with pytest.raises(InvalidArgument):
            cell_reach(width, level)


def test_an_order_s_clusters_show_no_record() -> None:
    """Their repr says nothing of them."""
    found = order_clusters(MATRIX, [9, 9], 1, order="corner")
    assert "array" not in repr(found)
    assert isinstance(found, clusters.OrderClusters)
    assert not isinstance(found, clusters.RankClusters)
