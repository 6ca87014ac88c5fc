"""Order restored around declared atoms, against brute force on small lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.columns.consistency import isotonic, isotonic_with_atoms

ATOMS = (0, 6)
LISTS = st.lists(st.tuples(st.integers(-4, 10), st.integers(1, 3)), min_size=1, max_size=7)


def make(cells: list[tuple[int, int]], *, halves: bool = False) -> tuple[IntArray, IntArray]:
    """Sums and sizes of clusters with these means, all of them off the grid where `halves`."""
    sizes = np.array([2 * size for _, size in cells])
    return np.array([mean for mean, _ in cells]) * sizes + (sizes // 2 if halves else 0), sizes


def label_of(mean: float, atoms: tuple[int, ...]) -> int:
    """2 i + 1 at atom i, 2 i between atoms i - 1 and i."""
    return 2 * atoms.index(int(mean)) + 1 if mean in atoms else 2 * sum(atom < mean for atom in atoms)


def most_agreement(means: FloatArray, sizes: IntArray, atoms: tuple[int, ...]) -> set[tuple[int | None, ...]]:
    """Which pins the best cuts of the list keep: every non-decreasing choice of stretches, tried one by one."""
    mine = [label_of(mean, atoms) for mean in means]
    there = {(label - 1) // 2 for label in mine if label % 2}
    known = tuple(atom for place, atom in enumerate(atoms) if place in there)  # an atom without pins bounds nothing
    mine = [label_of(mean, known) for mean in means]
    scores: dict[tuple[int, ...], int] = {}
    for cut in itertools.combinations_with_replacement(range(2 * len(known) + 1), len(mine)):
        scores[cut] = sum(
            2 * int(size) + label % 2 for size, label, state in zip(sizes, mine, cut, strict=True) if label == state
        )
    best = max(scores.values())
    return {
        tuple(known[label // 2] if label == state and label % 2 else None for label, state in zip(mine, cut, strict=True))
        for cut, score in scores.items()
        if score == best
    }


def fit_within(means: FloatArray, sizes: IntArray, pins: tuple[int | None, ...]) -> FloatArray:
    """Least squares under order and pins, by projecting again and again (Dykstra), which converges to the one solution."""
    low = [max((pin for pin in pins[: place + 1] if pin is not None), default=-np.inf) for place in range(len(pins))]
    high = [min((pin for pin in pins[place:] if pin is not None), default=np.inf) for place in range(len(pins))]
    fitted, first, second = means.astype(np.float64), np.zeros(len(means)), np.zeros(len(means))
    for _ in range(2000):
        ordered = isotonic(fitted + first, sizes)
        first = fitted + first - ordered
        inside = np.clip(ordered + second, low, high)
        second = ordered + second - inside
        fitted = inside
    return fitted


@given(LISTS)
def test_pins_and_order_are_what_brute_force_finds(cells: list[tuple[int, int]]) -> None:
    """The pins are those of one of the best cuts, and the rest is the least-squares fit within order and pins."""
    sums, sizes = make(cells)
    found = isotonic_with_atoms(sums, sizes, ATOMS)
    assert (np.diff(found) >= -1e-9).all()
    wanted = [fit_within(sums / sizes, sizes, pins) for pins in most_agreement(sums / sizes, sizes, ATOMS)]
    assert any(np.allclose(found, one, atol=1e-6) for one in wanted), (found, wanted)


@given(LISTS, st.integers(1, 40))
def test_blocks_near_an_atom_ascend_and_lie_at_it(cells: list[tuple[int, int]], scale: int) -> None:
    """With a public scale: in order, and blocks of the plain fit that are within two of their deviations of an atom are at one,
    unless others contradict them."""
    sums, sizes = make(cells)
    found = isotonic_with_atoms(sums, sizes, (0,), scale=scale)
    assert (np.diff(found) >= -1e-9).all()
    plain = isotonic(sums / sizes, sizes)
    if len(set(plain.tolist())) == 1:
        deviation = np.sqrt(len(sums) / 2) / np.sinh(0.5 / scale) / sizes.sum()
        assert (found == 0).all() == (abs(plain[0]) <= 2 * deviation)
        assert (found == 0).all() or np.array_equal(found, plain)


@pytest.mark.parametrize(
    ("means", "wanted"),
    [
        ([0, 0, 0, -9, 3], [0, 0, 0, 0, 3]),  # a heap keeps its place, and what was below it is moved to it
        ([0, 6, 0, 0, 6], [0, 0, 0, 0, 6]),  # out of order: the choice with most records
        ([6, 6, 6, 0, 6], [6, 6, 6, 6, 6]),
        ([0, 0, 0, 8, 9, 10, 0, 9], [0, 0, 0, 27 / 4, 27 / 4, 27 / 4, 27 / 4, 9]),  # an accident far off drags nobody along
        ([-3, 0, 0, -7, 5, 0], [-3, 0, 0, 0, 0, 0]),  # one record more for the pin
    ],
)
def test_pins_out_of_order(means: list[int], wanted: list[float]) -> None:
    """Equal clusters."""
    sizes = np.full(len(means), 4)
    found = isotonic_with_atoms(np.array(means) * 4, sizes, ATOMS)
    assert np.allclose(found, wanted), found
