"""The closed-form errors of the noise within classes are the means of many runs on Adult, and the tests tell scales 30% off."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from release_pipeline.mechanisms import Epsilon, Grid, Hierarchy
from release_pipeline.mechanisms.clusters.lattice import search_lattice
from release_pipeline.mechanisms.columns.class_noise import add_class_noise, class_diameters, class_scales, expect_relative_errors
from tests.statistical.goodness import TRUE_PASSES, WRONG_FAILS, chi_square

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

SECRET = bytes(range(32))
QUASI = ("age", "sex", "race", "marital_status")
HOURS = Grid.declare((1, 99), 1)
K, RUNS, FEW = 10, 200, 40
WITHIN = 0.01  # of the closed form; scales 30% off move the mean by 30%, and a square by more
EPSILONS = ("0.2", "1", "5")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Classes(NamedTuple):
    """The hours of Adult's records, in hours and in grid units, and their classes (-1: suppressed)."""

    hours: Floats
    q: Ints
    group: Ints


@pytest.fixture(scope="module")
def adult(reference_data: Path) -> Classes:
    with (reference_data / "adult.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    hierarchies: list[Hierarchy] = []
    for name in QUASI:
        with (reference_data / "adult_hierarchies" / f"{name}.csv").open(newline="") as file:
            hierarchies.append(Hierarchy.of([tuple(row) for row in csv.reader(file)][1:]))
    codes = np.column_stack([h.encode([row[name] for row in rows]) for name, h in zip(QUASI, hierarchies, strict=True)])
    found = search_lattice(codes, hierarchies, K, len(rows) // 20)
    hours = np.array([float(row["hours_per_week"]) for row in rows])
    return Classes(hours, HOURS.quantise(hours), found.group)


def simulate(adult: Classes, scale: Ints, runs: int, *, clamp: bool) -> Ints:
    """The noise, clamping included, of `runs` independent releases: one row each."""
    return np.stack(
        [
            add_class_noise(adult.q, adult.group, scale, HOURS, secret=SECRET, context=("run", run), clamp=clamp) - adult.q
            for run in range(runs)
        ]
    )


def off(scale: Ints, factor: float) -> Ints:
    return np.rint(scale * factor).astype(np.int64)


def relative_error(adult: Classes, noise: Ints) -> float:
    """The mean of |y - x| / |x| over the records in classes, and over runs."""
    kept = adult.group >= 0
    return float(np.mean(np.abs(noise[:, kept]) / adult.hours[kept]))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_relative_error_is_the_mean_of_many_runs(adult: Classes, epsilon: str) -> None:
    """Within 1% over all records; scales 30% too small and too large are off by more than 10%. No hours are 0."""
    scale = class_scales(adult.q, adult.group, Epsilon.of(epsilon))
    by_class, count = expect_relative_errors(adult.hours, adult.group, scale, 1.0)
    assert count.sum() == np.count_nonzero(adult.group >= 0)
    expected = float(np.sum(by_class * count) / count.sum())
    assert relative_error(adult, simulate(adult, scale, RUNS, clamp=False)) == pytest.approx(expected, rel=WITHIN)
    for factor in (0.7, 1.3):
        wrong = relative_error(adult, simulate(adult, off(scale, factor), FEW, clamp=False))
        assert abs(wrong / expected - 1) > 10 * WITHIN


@pytest.mark.parametrize("epsilon", ["1", "30"])
def test_noise_within_a_class_follows_the_discrete_laplace(adult: Classes, epsilon: str) -> None:
    """The largest classes, with diam = 98 and less: the draws pass for ceil(diam / eps) and fail for scales 30% off it."""
    declared = Epsilon.of(epsilon)
    scale = class_scales(adult.q, adult.group, declared)
    noise = simulate(adult, scale, RUNS, clamp=False)
    sizes = np.bincount(adult.group[adult.group >= 0])
    diameters = class_diameters(adult.q, adult.group)
    by_diameter = {int(d): int(np.flatnonzero(diameters == d)[sizes[diameters == d].argmax()]) for d in np.unique(diameters)}
    chosen = sorted((g for d, g in by_diameter.items() if d > 0), key=lambda g: -sizes[g])[:6]
    for number in chosen:
        mine = noise[:, adult.group == number].ravel()
        true = -(-int(diameters[number]) * 10**9 // declared.nano)
        assert scale[number] == true
        assert chi_square(mine, true) > TRUE_PASSES
        assert chi_square(mine, 0.7 * true) < WRONG_FAILS
        assert chi_square(mine, 1.3 * true) < WRONG_FAILS
