"""What becomes of a column's distribution: how many records share each declared atom, and how far the values lie apart as a
whole. Expected from simulated noise before anything is charged, and measured afterwards. Confidential, like every figure here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.privacy.distributions import BEYOND, find_gap, share_at
from release_pipeline.privacy.grid import Grid
from release_pipeline.privacy.tally import Tally

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


def summarise_shapes(column: Tally, simulated: Iterable[Tally], points: npt.NDArray[Any]) -> ExpectedShape:
    """What simulated releases leave of the distribution of a column. `points`: the atoms and the reasons for no value."""
    original, gaps, shares = share_at(column, points), list[float](), list[Numbers]()
    for released in simulated:
        gaps.append(find_gap(column, released))
        shares.append(share_at(released, points))
    differences = [float(np.max(np.abs(share - original))) for share in shares] if len(points) else []
    return ExpectedShape(
        atom_share=float(np.mean(differences)) if differences else None,
        ks=float(np.mean(gaps)),
        at_atoms=tuple(np.mean(shares, axis=0).tolist()) if len(points) else (),
    )


def measure_atoms(column: NoiseColumn, before: Tally, after: Tally) -> dict[str, list[float | None]]:
    """The share of records at each atom, as it was on the declared grid and as it is released; of the original none that tells
    of fewer than ten records."""
    points = list_points(column)
    shares = share_at(before, points)
    return {"original": _hide(shares.tolist(), find_few(before, points)), "released": share_at(after, points).tolist()}


def find_few(column: Tally, points: Numbers) -> npt.NDArray[np.bool_]:
    """Which points fewer than ten records have, or all but fewer than ten: their share would tell of single persons."""
    counts, records = column.count_up_to(points) - column.count_below(points), len(column)
    return (counts > 0) & (counts < records) & (np.minimum(counts, records - counts) < BEYOND)


def _hide(shares: Sequence[float | None], few: npt.NDArray[np.bool_]) -> list[float | None]:
    return [None if hidden else share for share, hidden in zip(shares, few.tolist(), strict=True)]


def list_points(column: NoiseColumn) -> Numbers:
    """The values and the reasons for none whose share of the records is looked at, ascending."""
    return np.append(place_atoms(column.exact_grid, column.exact_atoms), column.reason_points)


def lie_on_grid(grid: Grid, values: Numbers) -> bool:
    """Whether every value is a point of the grid inside the domain."""
    return np.array_equal(values, grid.snap(values))


def place_atoms(grid: Grid, atoms: Sequence[int]) -> Numbers:
    """The values of atoms in grid units."""
    return grid.restore(np.array(atoms, dtype=np.float64))
