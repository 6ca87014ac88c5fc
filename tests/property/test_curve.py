"""Insensitivity: one changed record costs each cluster at most one record and brings it at most one, whatever the table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release_pipeline.mechanisms import noise_stream, order_clusters, order_keys

SECRET = bytes(range(32))
Row = tuple[int, ...]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], list[Row], int, int, Row]:
    """Widths, rows, k, and a slot with the record that comes into it. Small widths: keys and records repeat."""
    m = draw(st.integers(1, 5))
    widths = draw(st.lists(st.one_of(st.integers(1, 6), st.sampled_from([100, 2**16 - 1, 2**52])), min_size=m, max_size=m))
    row = st.tuples(*(st.one_of(st.integers(0, min(width, 3)), st.integers(0, width)) for width in widths))
    few = draw(st.lists(row, min_size=1, max_size=6))
    rows = draw(st.lists(st.one_of(st.sampled_from(few), row), min_size=1, max_size=40))
    k = draw(st.integers(1, len(rows)))
    slot = draw(st.integers(0, len(rows) - 1))
    return widths, rows, k, slot, draw(st.one_of(st.sampled_from(few), row))


@pytest.mark.parametrize("order", ["corner", "hilbert"])
@settings(max_examples=100)
@given(table=tables(), keyed=st.booleans())
def test_one_changed_record_moves_at_most_one_through_each_cluster(
    order: str, table: tuple[list[int], list[Row], int, int, Row], keyed: bool
) -> None:
    widths, rows, k, slot, changed = table
    members: list[list[set[tuple[int, Row]]]] = []
    sizes: list[list[int]] = []
    for version in (rows, [*rows[:slot], changed, *rows[slot + 1 :]]):
        ties = noise_stream(SECRET) if keyed else None
        found = order_clusters(np.array(version), widths, k, order=order, ties=ties)
        sets: list[set[tuple[int, Row]]] = [set() for _ in range(found.count)]
        for record, cluster in enumerate(found.cluster.tolist()):
            sets[cluster].add((record, version[record]))
        members.append(sets)
        sizes.append(found.size.tolist())
    assert sizes[0] == sizes[1] == [len(group) for group in members[0]]
    for before, after in zip(*members, strict=True):
        assert len(before - after) <= 1
        assert len(after - before) <= 1


@pytest.mark.parametrize("order", ["corner", "hilbert"])
@given(table=tables())
def test_equal_records_have_equal_keys_and_keys_ignore_the_others(
    order: str, table: tuple[list[int], list[Row], int, int, Row]
) -> None:
    """On the curve different records have different keys where it is deep enough for the columns."""
    widths, rows, _, slot, changed = table
    keys = order_keys(rows, widths, order).tolist()
    key_of = dict(zip(rows, keys, strict=True))
    assert keys == [key_of[row] for row in rows]
    rows[slot] = changed
    again = order_keys(rows, widths, order).tolist()
    assert again[:slot] + again[slot + 1 :] == keys[:slot] + keys[slot + 1 :]
    if order == "hilbert" and max(widths) <= 6:
        assert len(set(key_of.values())) == len(key_of)
