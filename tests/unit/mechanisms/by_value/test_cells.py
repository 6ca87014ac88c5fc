"""Cells are all of 0..width, each number in one of them, and public."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.by_value.cells import find_cells, first_edges

WIDTHS = st.one_of(st.integers(1, 200), st.integers(1, 2**52))


@st.composite
def declared(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    """A width, a centre and atoms."""
    width = draw(WIDTHS)
    inside = st.integers(0, width)
    return width, draw(inside), draw(st.lists(inside, max_size=4, unique=True))


@given(declared(), st.sampled_from([1, 4]))
def test_they_are_all_of_the_domain(facts: tuple[int, int, list[int]], per_octave: int) -> None:
    """From 0 to the width, ascending; centre and atoms are cells of their own."""
    width, centre, atoms = facts
    edges = first_edges(width, centre=centre, atoms=atoms, per_octave=per_octave)
    assert edges[0] == 0
    assert edges[-1] == width + 1
    assert (np.diff(edges) > 0).all()
    assert {centre, centre + 1, *atoms, *(atom + 1 for atom in atoms)} <= set(edges.tolist())
    assert len(edges) <= 2 * per_octave * 54 + 2 * len(atoms) + 3


@given(declared(), st.data())
def test_each_number_is_counted_once(facts: tuple[int, int, list[int]], data: st.DataObject) -> None:
    """In the cell that it is in."""
    width, centre, atoms = facts
    edges = first_edges(width, centre=centre, atoms=atoms)
    numbers = np.sort(np.array(data.draw(st.lists(st.integers(0, width), max_size=40)), dtype=np.int64))
    counts = Tally.of(numbers).count_within(edges)
    assert counts.tolist() == np.bincount(find_cells(edges, numbers), minlength=len(counts)).tolist()
    assert int(counts.sum()) == len(numbers)
