"""The column that is masked, and how: the same for the clock and for the memory subprocess."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from release_pipeline.privacy import MaskedColumn, mask_column

DOMAIN, GRID, EPSILON, K = (0, 10**6), "0.01", 1, 5


@dataclass(frozen=True, slots=True)
class Masking:
    """One way to mask a column: k = 5 for the cluster methods, consistency and clamping as default, a fresh secret each time."""

    method: str
    scope: str
    atoms: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.method}, {self.scope}{f', {len(self.atoms)} atoms' if self.atoms else ''}"

    def __call__(self, values: npt.NDArray[np.float64]) -> MaskedColumn:
        return mask_column(
            values,
            domain=DOMAIN,
            grid=GRID,
            method=self.method,
            epsilon=EPSILON,
            k=None if self.method == "laplace" else K,
            scope=self.scope,
            atoms=self.atoms,
        )


def lognormal_column(n: int) -> npt.NDArray[np.float64]:
    """n lognormal values, median e^10, like incomes to the cent; made in place, so that no larger memory peak came before."""
    values = np.empty(n)
    np.random.default_rng(n).standard_normal(out=values)
    values += 10
    return np.exp(values, out=values)


def warm_up(mask: Masking) -> None:
    """Load what is loaded once per process (SciPy, the sampler's tables), so that it counts neither as time nor as memory."""
    mask(lognormal_column(1000))
