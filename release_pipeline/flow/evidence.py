"""What is written down of a masked column, for the confidential side."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from release_pipeline.privacy.methods import Statistics


@dataclass(frozen=True, slots=True)
class ColumnEvidence:
    """Internal figures of one column: none of them may be published, the true error and the exact losses least of all.

    Scales are in the column's own units, of the cluster sums; `error` is the mean squared error over the variance.
    """

    epsilon: str
    records: int
    clusters: int
    clusters_without_noise: int
    scale_smallest: float
    scale_median: float
    scale_largest: float
    loss_centroid: float
    loss_column: float
    error: float

    def to_json(self) -> dict[str, Any]:
        """The figures by name."""
        return dataclasses.asdict(self)


def collect_evidence(exact: Statistics, *, error: float) -> ColumnEvidence:
    """The figures of one column."""
    step = float(exact.grid.step)
    return ColumnEvidence(
        epsilon=str(exact.claim.epsilon),
        records=int(exact.size.sum()),
        clusters=len(exact.size),
        clusters_without_noise=int(np.count_nonzero(exact.scale == 0)),
        scale_smallest=float(exact.scale.min()) * step,
        scale_median=float(np.median(exact.scale)) * step,
        scale_largest=float(exact.scale.max()) * step,
        loss_centroid=exact.loss["centroid"],
        loss_column=exact.loss["column"],
        error=error,
    )
