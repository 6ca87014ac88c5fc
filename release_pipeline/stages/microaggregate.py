"""Clusters, exact sums and scales of one noise column or of all together, and what error to expect of them. Confidential
throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.policy.hierarchies import Intervals
from release_pipeline.policy.kinds import DropColumn, pick
from release_pipeline.policy.model import Policy
from release_pipeline.policy.options import ColumnOptions
from release_pipeline.privacy.grid import FloatArray, IntArray
from release_pipeline.privacy.methods import Statistics, compute_statistics, simulate_noise
from release_pipeline.privacy.noise import Context
from release_pipeline.privacy.utility import Clamping, mean_of, measure_clamping, variance_of
from release_pipeline.privacy.vectors import compute_vectors, quantise_columns
from release_pipeline.stages.ranges import predict

DRAWS, ROUNDS = 200_000, 200  # simulated draws per column for the expected error, in 3 rounds of them to 200
LEAST_COUNTED, MOST_COUNTED = 9, 25  # rounds of them of methods that count: each takes a fit, or rows


def take_clamping(
    policy: Policy, numbers: Callable[[str], tuple[npt.NDArray[np.float64], IntArray | None]]
) -> dict[str, Clamping]:
    """What moving numbers into their domains takes from each column that has one. `numbers`: those of a column, and how many
    records have each if that is more than one."""
    intervals = {name: column.hierarchy for name, column in policy.generalised_columns.items()}
    declared = policy.noise_columns | {name: spec for name, spec in intervals.items() if isinstance(spec, Intervals)}
    grids = {name: spec.exact_grid for name, spec in declared.items()}
    for name, column in pick(policy.columns, DropColumn).items():
        if column.exact_grid is not None:
            grids[name] = column.exact_grid
    came = ((name, grid, *numbers(name)) for name, grid in grids.items())
    return {name: measure_clamping(own, grid, counts) for name, grid, own, counts in came}


def microaggregate(
    policy: Policy,
    name: str,
    numbers: npt.NDArray[np.float64],
    *,
    secret: bytes,
    context: Sequence[Context],
) -> Statistics:
    """The exact statistics of one noise column under the policy's method, and the noise scales."""
    column, protect = policy.noise_columns[name], policy.protect
    assert isinstance(protect, ColumnOptions)  # noqa: S101  for the type checker
    return compute_statistics(
        numbers,
        grid=column.exact_grid,
        atoms=column.exact_atoms,
        method=protect.method,
        epsilon=policy.column_epsilon[name],
        k=protect.k,
        scope=protect.scope,
        definition=protect.definition,
        consistency=policy.consistency,
        secret=secret,
        context=(*context, name),
    )


def microaggregate_together(
    policy: Policy,
    numbers: Callable[[str], npt.NDArray[np.float64]],
    *,
    secret: bytes,
    context: Sequence[Context],
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Statistics]:
    """The exact statistics of all noise columns under a method that clusters them together, and the noise scales."""
    spec, columns = policy.vectors, policy.noise_columns
    assert spec is not None  # noqa: S101  for the type checker
    grids = [column.exact_grid for column in columns.values()]
    found = compute_vectors(
        quantise_columns(map(numbers, columns), grids),
        grids=grids,
        spec=spec,
        secret=secret,
        context=context,
        progress=progress,
    )
    return dict(zip(columns, found, strict=True))


def count_rounds(values: int) -> int:
    """In how many rounds a method that counts is simulated for what is expected of so many values. Where records are few one
    round in a thousand is far off: of few rounds it would decide the mean, and with it a gate."""
    return int(np.clip(DRAWS // values, LEAST_COUNTED, MOST_COUNTED))


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """The mean squared error to expect over the column's variance, both of the values as the method sees them, and the range that
    99 of 100 releases should be in."""

    mean: float
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, float | None]:
        """As evidence keeps it."""
        return {"error": self.mean, "error_low": self.low, "error_high": self.high}


def expect_error(
    exact: Statistics,
    numbers: npt.NDArray[np.float64],
    *,
    secret: bytes,
    context: Sequence[Context],
    clamp: bool = True,
) -> ExpectedError:
    """The mean squared error over the column's variance that this method has on these data, consistency and clamping of noisy
    values included; `clamp` as the policy has it.

    It is the error of the method: against the values as it sees them, in the domain and on the grid, and over their variance.
    What moving them there took is told apart (`utility.measure_clamping`): a few records far outside would hide the method's
    error otherwise.

    The mean over simulated noise, drawn from streams of their own: a gate on it does not look at the noise that is released
    (methods.md section 2), only at the data and the scales. 1.0 is no better than publishing the mean. The range is from the
    least to the greatest of 200 simulated errors, which one more of them is in with probability 199/201 whatever their law; where
    so many records are masked that fewer rounds are simulated, errors are nearly lognormal, and it is a prediction interval of
    Student's t for the logarithm. Without noise there is no range.
    """
    rounds = int(np.clip(DRAWS // len(exact.size), 3, ROUNDS)) if exact.scale.any() else 1
    simulated = simulate_noise(exact, rounds, clamp=clamp, secret=secret, context=context)
    return summarise_errors(simulated, exact.grid.snap(numbers), exact.cluster, exact.size)


@np.errstate(over="ignore", invalid="ignore")  # squares that no float holds
def summarise_errors(
    simulated: Iterable[FloatArray],
    numbers: FloatArray,
    cluster: npt.NDArray[np.intp],
    size: IntArray,
) -> ExpectedError:
    """The mean squared errors of simulated releases over the variance of these numbers, and the range of one more of them.
    `simulated`: a value for each cluster, release by release."""
    centre, sums = mean_of(numbers), np.zeros(len(size))
    off = numbers - centre
    np.add.at(sums, cluster, off)
    squares = float(np.sum(np.square(off)))
    del off
    if squares == 0:
        return ExpectedError(0.0, None, None)
    found = np.array([_sum_errors(values - centre, sums, size, squares) for values in simulated]) / squares
    return ExpectedError(float(np.mean(found)), *predict_range(found))


def _sum_errors(released: FloatArray, sums: FloatArray, size: IntArray, squares: float) -> float:
    """The sum of squared errors of all records where each cluster has a released value. All are told from one centre: the
    values, which are overwritten, the `sums` of clusters, and the `squares` of all records together."""
    across = float(np.sum(released * sums))
    np.square(released, out=released)
    released *= size
    return squares - 2 * across + float(np.sum(released))


@np.errstate(over="ignore", invalid="ignore")
def summarise_values(simulated: Iterable[FloatArray], ascending: FloatArray, size: IntArray, high: float) -> ExpectedError:
    """The same of a column where records may have no value, which points above `high` stand for: of those that have one both
    before and after, over the variance of the values before. `ascending`: all records in the order of the clusters."""
    values = ascending[: int(np.searchsorted(ascending, high, side="right"))]
    spread = variance_of(values) if len(values) else 0.0
    if spread == 0:
        return ExpectedError(0.0, None, None)
    cluster, errors = np.repeat(np.arange(len(size)), size)[: len(values)], list[float]()
    for of_clusters in simulated:
        apart = of_clusters[cluster]
        has_value = apart <= high
        apart -= values
        np.square(apart, out=apart)
        apart[~has_value] = 0
        both = int(np.count_nonzero(has_value))
        errors.append(float(np.sum(apart)) / both / spread if both else 1.0)
    return summarise_found(errors)


def summarise_found(errors: Sequence[float]) -> ExpectedError:
    """Of errors of simulated releases, each over the variance."""
    found = np.array(errors)
    return ExpectedError(float(np.mean(found)), *predict_range(found))


def predict_range(found: npt.NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Where one more of these figures should be, in 99 of 100 cases."""
    rounds = len(found)
    if rounds == 1:
        return None, None
    if rounds == ROUNDS or (found <= 0).any():
        return float(found.min()), float(found.max())
    return predict(found, positive=True)
