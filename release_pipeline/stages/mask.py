"""Masks the noise columns of one table, column by column, and says what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from release_pipeline.policy.model import NoiseColumn, Policy
from release_pipeline.privacy import MaskedColumn, mask_column
from release_pipeline.privacy.noise import Context


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """Internal figures of one masked column: none of them may be published, the true error and the exact losses least of all."""

    epsilon: str
    records: int
    clusters: int
    clusters_without_noise: int
    scale_smallest: float
    scale_median: float
    scale_largest: float
    loss_centroid: float
    loss_column: float
    noise_error: float
    error: float

    def to_json(self) -> dict[str, Any]:
        """The figures by name."""
        return {name: getattr(self, name) for name in self.__slots__}


def mask_numbers(
    policy: Policy, name: str, numbers: npt.NDArray[np.float64], *, secret: bytes, context: Sequence[Context]
) -> tuple[npt.NDArray[np.float64], ColumnEvidence]:
    """The released values of one noise column, in the records' order, and the evidence. Missing numbers get the declared fill."""
    column = policy.noise_columns[name]
    numbers = _fill(column, numbers)
    masked = mask_column(
        numbers,
        domain=column.domain,
        grid=column.grid,
        method=policy.protect.method,
        epsilon=policy.column_epsilon[name],
        k=policy.protect.k,
        scope=policy.protect.scope,
        consistency=policy.protect.consistency,
        secret=secret,
        context=(*context, name),
    )
    return masked.values, _evidence(column, numbers, masked)


def _fill(column: NoiseColumn, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if isinstance(column.missing, str):
        return numbers
    return np.where(np.isnan(numbers), float(column.missing.fill), numbers)


def _evidence(column: NoiseColumn, numbers: npt.NDArray[np.float64], masked: MaskedColumn) -> ColumnEvidence:
    """`noise_error` and `error` are mean squares over the column's variance: expected from noise alone, and what came out."""
    step = float(column.grid)
    noise = masked.scale[masked.scale > 0].astype(np.float64)
    sizes = masked.size[masked.scale > 0]
    low, high = (float(bound) for bound in column.domain)
    variance = float(np.var(np.clip(numbers, low, high)))
    squares = float(np.sum(step**2 / (2 * np.sinh(1 / (2 * noise)) ** 2) / sizes)) / len(numbers)
    difference = masked.values - numbers
    return ColumnEvidence(
        epsilon=str(masked.claim.epsilon),
        records=len(numbers),
        clusters=len(masked.size),
        clusters_without_noise=int(np.count_nonzero(masked.scale == 0)),
        scale_smallest=float(masked.scale.min()) * step,
        scale_median=float(np.median(masked.scale)) * step,
        scale_largest=float(masked.scale.max()) * step,
        loss_centroid=masked.loss["centroid"],
        loss_column=masked.loss["column"],
        noise_error=squares / variance,
        error=float(np.mean(difference * difference)) / variance,
    )
