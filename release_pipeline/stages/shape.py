"""What becomes of a column's distribution: how many records share each declared atom, and how far the values lie apart as a
whole. Expected from simulated noise before anything is charged, and measured afterwards. Confidential, like every figure here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.privacy.distributions import BEYOND, ks_of_clusters, share_at
from release_pipeline.privacy.grid import Grid, IntArray
from release_pipeline.privacy.methods import Statistics, simulate_noise
from release_pipeline.privacy.noise import Context
from release_pipeline.privacy.tally import Tally, find_gap, share_at_entries

DRAWS, LEAST, MOST = 200_000, 3, 25  # simulated draws per column, and in how many rounds

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExpectedShape:
    """Means over simulated noise: `atom_share`, the largest difference of a share at an atom (None without atoms), `ks`, and the
    share at each atom."""

    atom_share: float | None
    ks: float
    at_atoms: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """As evidence keeps it."""
        return asdict(self) | {"at_atoms": list(self.at_atoms)}


def expect_shape(
    exact: Statistics,
    numbers: Numbers,
    *,
    secret: bytes,
    context: Sequence[Context],
    clamp: bool = True,
) -> ExpectedShape:
    """What this method leaves of the distribution of these data on their declared grid, consistency and clamping included.

    Like the expected error it is of simulated noise from streams of its own, and does not look at the noise that is released.
    Released values are one for each cluster: no column is made.
    """
    ascending = exact.grid.snap(numbers)
    ascending.sort()
    rounds = int(np.clip(DRAWS // len(exact.size), LEAST, MOST)) if exact.scale.any() else 1
    simulated = simulate_noise(exact, rounds, clamp=clamp, secret=secret, context=context)
    return summarise_shapes(simulated, ascending, exact.size, _points(exact.grid, exact.atoms))


def summarise_shapes(simulated: Iterable[Numbers], ascending: Numbers, size: IntArray, atoms: Numbers) -> ExpectedShape:
    """What simulated releases leave of the distribution of these numbers, which ascend. `simulated`: a value for each cluster,
    release by release; `atoms` in the column's own units."""
    original = share_at(ascending, atoms)
    distances, shares = list[float](), list[Numbers]()
    for released in simulated:
        distances.append(ks_of_clusters(ascending, released, size))
        shares.append(share_at(released, atoms, size))
    differences = [float(np.max(np.abs(share - original))) for share in shares] if len(atoms) else []
    return ExpectedShape(
        atom_share=float(np.mean(differences)) if differences else None,
        ks=float(np.mean(distances)),
        at_atoms=tuple(np.mean(shares, axis=0).tolist()) if len(atoms) else (),
    )


def summarise_tallies(entries: Tally, simulated: Sequence[Tally], points: IntArray) -> ExpectedShape:
    """The same of the tallies of a column and of its simulated releases; `points` are entries."""
    original, shares = share_at_entries(entries, points), [share_at_entries(one, points) for one in simulated]
    differences = [float(np.max(np.abs(share - original))) for share in shares] if len(points) else []
    return ExpectedShape(
        atom_share=float(np.mean(differences)) if differences else None,
        ks=float(np.mean([find_gap(entries, one) for one in simulated])),
        at_atoms=tuple(np.mean(shares, axis=0).tolist()) if len(points) else (),
    )


def measure_atoms(
    column: NoiseColumn,
    original: Numbers,
    released: Numbers,
    weights: tuple[Numbers, Numbers] | None = None,
) -> dict[str, list[float | None]]:
    """The share of records at each atom, as it was on the declared grid and as it is released; of the original none that tells
    of fewer than ten records. With weights (before and after) the shares of what the records stand for, too."""
    grid, points = column.coded_grid, list_points(column)
    snapped = grid.snap(original)
    before = share_at(snapped, points)
    counts = np.rint(before * len(original))
    few = (counts > 0) & (counts < len(original)) & (np.minimum(counts, len(original) - counts) < BEYOND)
    found = {"original": _hide(before.tolist(), few), "released": share_at(released, points).tolist()}
    if weights is not None:
        found["weighted_original"] = _hide(_weigh(snapped, points, weights[0]), few)
        found["weighted_released"] = _weigh(released, points, weights[1])
    return found


def _hide(shares: Sequence[float | None], few: npt.NDArray[np.bool_]) -> list[float | None]:
    return [None if hidden else share for share, hidden in zip(shares, few.tolist(), strict=True)]


def _weigh(numbers: Numbers, points: Numbers, weights: Numbers) -> list[float | None]:
    """The share of all weight that is at each point; None where there is no weight."""
    total = float(np.nansum(weights))
    return [float(np.nansum(weights[numbers == point])) / total if total > 0 else None for point in points]


def list_points(column: NoiseColumn) -> Numbers:
    """The values and the reasons for none whose share of the records is looked at, ascending."""
    return np.append(_points(column.exact_grid, column.exact_atoms), column.reason_points)


def lie_on_grid(grid: Grid, values: Numbers) -> bool:
    """Whether every value is a point of the grid inside the domain."""
    return np.array_equal(values, grid.snap(values))


def _points(grid: Grid, atoms: Sequence[int]) -> Numbers:
    return grid.restore(np.array(atoms, dtype=np.float64))
