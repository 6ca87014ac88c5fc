"""The graphical model of groups: its tree of cliques, its tables by brute force, and samples that have them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from release_pipeline.mechanisms.whole_table.model import Model, Noisy, count_cells, make_tree

SIZES = [2, 3, 2, 4, 3]
CIRCLE = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]


@given(st.lists(st.integers(2, 4), min_size=2, max_size=7), st.data())
def test_cliques_make_a_tree_whatever_the_pairs(sizes: list[int], data: st.DataObject) -> None:
    """Every pair and column is in one; cliques that have a column in common are joined by such (running intersection)."""
    every = list(itertools.combinations(range(len(sizes)), 2))
    pairs = data.draw(st.lists(st.sampled_from(every), unique=True))
    tree = make_tree(sizes, pairs)
    for wanted in [*pairs, *((column,) for column in range(len(sizes)))]:
        assert set(wanted) <= set(tree.cliques[tree.home(wanted, sizes)])
    assert all(parent < place for place, parent in enumerate(tree.parents))
    for column in range(len(sizes)):
        having = [place for place, clique in enumerate(tree.cliques) if column in clique]
        roots = [place for place in having if place == 0 or column not in tree.shared[place]]
        assert len(roots) == 1, (tree, column)
    assert count_cells(sizes, tree.cliques) == sum(math.prod(sizes[column] for column in clique) for clique in tree.cliques)


def whole_table(model: Model) -> npt.NDArray[np.float64]:
    """The distribution of a model over all combinations, by its potentials: slow and plain."""
    potentials = model._potentials  # pyright: ignore[reportPrivateUsage]
    logs = np.zeros(model.sizes)
    for noisy, potential in zip(model.measured, potentials, strict=True):
        logs = logs + potential.reshape([size if place in noisy.columns else 1 for place, size in enumerate(model.sizes)])
    weights = np.exp(logs - logs.max())
    return weights * (model.records / weights.sum())


def measure(truth: npt.NDArray[np.float64], columns: tuple[int, ...], noise: float = 0.0, seed: int = 0) -> Noisy:
    """Counts of some columns of a whole table."""
    counts = truth.sum(axis=tuple(place for place in range(truth.ndim) if place not in columns))
    drawn = np.random.default_rng(seed).normal(0, noise, counts.shape) if noise else np.zeros(counts.shape)
    return Noisy(columns, counts + drawn, np.full(counts.shape, 1 / max(noise, 1.0) ** 2))


def make_truth(seed: int = 1) -> npt.NDArray[np.float64]:
    """Records of all combinations."""
    return np.random.default_rng(seed).gamma(0.5, 1, SIZES) * 100


def test_tables_are_those_of_the_whole_distribution() -> None:
    """Messages give what adding up all combinations gives, for every pair of a clique and every column."""
    truth = make_truth()
    model = Model(SIZES, [measure(truth, pair, 20) for pair in CIRCLE], float(truth.sum()))
    model.fit()
    whole = whole_table(model)
    for columns in [*CIRCLE, (0,), (4,)]:
        summed = whole.sum(axis=tuple(place for place in range(5) if place not in columns))
        assert np.allclose(model.table(columns), summed, rtol=1e-9)


def test_counts_without_noise_are_reached_and_more_noise_counts_less() -> None:
    """Pairs round a circle, exactly; of two that contradict each other the surer one."""
    truth = make_truth()
    model = Model(SIZES, [measure(truth, pair) for pair in CIRCLE], float(truth.sum()))
    model.fit()
    for pair in CIRCLE:
        assert np.abs(model.table(pair) - measure(truth, pair).counts).max() < 0.02 * truth.sum()
    sure, unsure = measure(truth, (0, 1)), measure(make_truth(2) * (truth.sum() / make_truth(2).sum()), (1,), 0)
    model = Model(SIZES, [sure, Noisy((1,), unsure.counts, unsure.precision / 1e4)], float(truth.sum()))
    model.fit()
    assert np.abs(model.table((1,)) - sure.counts.sum(axis=0)).max() < 0.02 * truth.sum()
