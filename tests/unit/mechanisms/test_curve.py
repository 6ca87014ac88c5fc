"""Keys, clusters and reach of the orders of records, against plain Python integers and by enumeration."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from release_pipeline.errors import InvalidArgument, InvalidType
from release_pipeline.mechanisms import curve_depth, noise_stream, order_clusters, order_keys, rank_clusters

WIDE = 2**52
SECRET = bytes(range(32))


def cell(q: int, width: int, level: int) -> int:
    return min(q * 2**level // width, 2**level - 1)


def random_rows(chance: random.Random, widths: Sequence[int], n: int) -> list[list[int]]:
    """Ends, their neighbours, powers of two and anything between."""

    def draw(width: int) -> int:
        near = [0, 1, width - 1, width, width // 2, 2 ** chance.randrange(53) - 1, 2 ** chance.randrange(53)]
        return min(chance.choice([*near, chance.randint(0, width)]), width)

    return [[draw(width) for width in widths] for _ in range(n)]


@pytest.mark.parametrize(
    ("m", "depth"),
    [(1, 9), (2, 1), (2, 6), (3, 4), (4, 3), (7, 2), (12, 1)],
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
        tie = rank_clusters([0] * n, 1, ties=noise_stream(secret) if secret else None).tolist()
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


MATRIX = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"quantised": [1, 2]}, InvalidArgument),
        ({"quantised": [[7321, 1]]}, InvalidArgument),
        ({"quantised": np.array([[2**63, 1]], dtype=np.uint64)}, InvalidArgument),
        ({"quantised": [[0.5, 1.0]]}, InvalidType),
        ({"quantised": [["7321", "1"]]}, InvalidType),
        ({"quantised": np.ma.masked_array(MATRIX, mask=[[1, 0], [0, 0]])}, InvalidType),
        ({"widths": [9]}, InvalidArgument),
        ({"widths": [9, WIDE + 1]}, InvalidArgument),
        ({"widths": [9, 9.0]}, InvalidType),
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
