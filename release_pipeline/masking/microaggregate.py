"""Clusters, exact sums and scales of one noise column or of all together, and what error to expect of them. Confidential
throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.audit.columns import ExpectedShape, place_atoms, predict, summarise_shapes
from release_pipeline.mechanisms.basis.grid import FloatArray, IntArray
from release_pipeline.mechanisms.basis.tally import Tally
from release_pipeline.mechanisms.basis.utility import Clamping, find_mean, find_variance, mean_of, measure_clamping, square_ranks
from release_pipeline.mechanisms.columns.methods import Statistics, compute_statistics, simulate_noise
from release_pipeline.mechanisms.noise import Context
from release_pipeline.mechanisms.vectors.vectors import compute_vectors, quantise_columns
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.file.options import ColumnOptions

DRAWS, LEAST, ROUNDS = 200_000, 3, 200  # simulated draws per column for what is expected, in 3 rounds of them to 200
SHAPES = 25  # of these, as many at most are compared as distributions
LEAST_COUNTED, MOST_COUNTED = 9, 25  # rounds of them of methods that count: each takes a fit, or rows


def take_clamping(
    policy: Policy, numbers: Callable[[str], tuple[npt.NDArray[np.float64], IntArray | None]]
) -> dict[str, Clamping]:
    """What moving numbers into their domains takes from each column that has one. `numbers`: those of a column, and how many
    records have each if that is more than one."""
    columns = policy.noise_columns | policy.generalised_columns | policy.columns  # in this order
    grids = {name: grid for name, column in columns.items() if (grid := column.exact_grid) is not None}
    came = ((name, grid, *numbers(name)) for name, grid in grids.items())
    return {name: measure_clamping(own, grid, counts) for name, grid, own, counts in came}


def microaggregate(
    policy: Policy,
    name: str,
    numbers: npt.NDArray[np.float64] | Tally,
    *,
    secret: bytes,
    context: Sequence[Context],
) -> Statistics:
    """The exact statistics of one noise column under the policy's method, and the noise scales, by its numbers or by the tally of
    its grid units (`compute_statistics`)."""
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
    statistics = compute_vectors(
        quantise_columns(map(numbers, columns), grids),
        grids=grids,
        spec=spec,
        secret=secret,
        context=context,
        progress=progress,
    )
    return dict(zip(columns, statistics, strict=True))


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


def expect_column(
    exact: Statistics,
    column: Tally,
    deviations: Deviations,
    *,
    secret: bytes,
    context: Sequence[Context],
    clamp: bool = True,
) -> tuple[ExpectedError, ExpectedShape]:
    """The mean squared error over the column's variance that this method has on these data, and what it leaves of their
    distribution, consistency and clamping of noisy values included; `clamp` as the policy has it. `column` and `deviations` are
    of the values as the method sees them.

    It is the error of the method: against the values as it sees them, in the domain and on the grid, and over their variance.
    `utility.measure_clamping` measures what moving them there took: a few records far outside would hide the method's
    error otherwise.

    Both are means over simulated noise, drawn from streams of its own: a gate on them does not look at the noise that is released
    (methods.md section 2), only at the data and the scales. An error of 1.0 is no better than publishing the mean. Its range is
    from the least to the greatest of 200 simulated errors, which one more of them is in with probability 199/201 whatever their
    law; where so many records are masked that fewer rounds are simulated, errors are nearly lognormal, and it is a prediction
    interval of Student's t for the logarithm. Without noise there is no range.
    """
    errors: list[float] = []

    def release() -> Iterator[Tally]:
        """The first simulated releases, of which one is held at a time; the error of each is noted."""
        rounds = int(np.clip(DRAWS // len(exact.size), LEAST, ROUNDS)) if exact.scale.any() else 1
        for values in simulate_noise(exact, rounds, clamp=clamp, secret=secret, context=context):
            errors.append(deviations.compare(values))
            if len(errors) <= SHAPES:
                yield Tally.of_clusters(values, exact.size)

    shape = summarise_shapes(column, release(), place_atoms(exact.grid, exact.atoms))
    return summarise_found(errors) if deviations.squares else ExpectedError(0.0, None, None), shape


@dataclass(frozen=True, slots=True, repr=False)
class Deviations:
    """How far values are from their mean, the `centre`: the sum of each cluster, and the `squares` of all records together."""

    centre: float
    size: IntArray
    sums: FloatArray
    squares: float

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")  # squares that no float holds
    def of_records(cls, numbers: FloatArray, cluster: npt.NDArray[np.integer[Any]], size: IntArray) -> Deviations:
        """Of records that are in these clusters."""
        off = numbers - (centre := mean_of(numbers))
        return cls(
            centre, size, np.bincount(cluster, off, len(size)).astype(np.float64, copy=False), float(np.sum(np.square(off)))
        )

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of_ranks(cls, column: Tally, size: IntArray) -> Deviations:
        """Of clusters of so many consecutive ranks."""
        off = Tally(column.entries - (centre := find_mean(column)), column.ends)
        return cls(centre, size, off.sum_clusters(size), float(np.sum(np.square(off.entries) * off.counts)))

    @np.errstate(over="ignore", invalid="ignore")
    def compare(self, released: FloatArray) -> float:
        """The sum of squared errors of all records where each cluster has a released value, over the squares."""
        if self.squares == 0:
            return 0.0
        values = released - self.centre
        across = float(np.sum(values * self.sums))
        return (self.squares - 2 * across + float(np.sum(np.square(values) * self.size))) / self.squares


def expect_ranks(column: Tally, simulated: Iterable[Tally], high: float) -> ExpectedError:
    """The mean squared error over the column's variance where released values ascend as the column's do. Points above `high`
    stand for no value: records that have one both before and after count, over the variance of the values before."""
    values = column.head(int(column.count_up_to(high)))
    spread, errors = find_variance(values), list[float]()
    if spread == 0:
        return ExpectedError(0.0, None, None)
    for released in simulated:
        both = min(len(values), int(released.count_up_to(high)))
        errors.append(square_ranks(values.head(both), released.head(both)) / spread if both else 1.0)
    return summarise_found(errors)


def summarise_found(errors: Sequence[float]) -> ExpectedError:
    """Of errors of simulated releases, each over the variance."""
    found = np.array(errors)
    return ExpectedError(float(np.mean(found)), *predict_range(found))


def predict_range(errors: npt.NDArray[np.float64]) -> tuple[float | None, float | None]:
    """Where one more of these figures should be, in 99 of 100 cases."""
    rounds = len(errors)
    if rounds == 1:
        return None, None
    if rounds == ROUNDS or (errors <= 0).any():
        return float(errors.min()), float(errors.max())
    return predict(errors, positive=True)
