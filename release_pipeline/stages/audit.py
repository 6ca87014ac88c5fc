"""Utility and risk of a masked table, first form. Figures against the original are internal: they inform, and gate nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy.model import Gates
from release_pipeline.privacy.noise import NoiseStream, shuffled_positions

LINKAGE_SAMPLE = 2_000

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit that the policy sets and what stands against it."""

    name: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        """Whether the value is within the limit (NaN is not)."""
        return self.value <= self.limit

    @property
    def words(self) -> str:
        """What to say when it does not pass: never the value, which is computed from the data."""
        return f"the {self.name} is over the limit {self.limit:g} (the figure is in the vault)."


def judge_gates(figures: Mapping[str, Mapping[str, Any]], gates: Gates) -> list[Gate]:
    """One gate for each column and kind of error with a limit; a column without the figure fails."""
    kinds = (
        ("error", "expected error", gates.expected_error),
        ("relative_error", "expected relative error", gates.relative_error),
    )
    found: list[Gate] = []
    for figure, words, limits in kinds:
        for name, limit in limits.items():
            value = figures.get(name, {}).get(figure)
            found.append(Gate(f"{words} of {name}", np.nan if value is None else float(value), float(limit)))
    return found


def audit_columns(
    original: pa.Table, released: pa.Table, own: npt.NDArray[np.intp], *, stream: NoiseStream
) -> dict[str, float | int | dict[str, float]]:
    """Every figure of a masked table against its original, which has the same columns; `own[i]` is the original of record i."""
    names = original.column_names
    x = np.stack([original.column(name).to_numpy()[own] for name in names], axis=1)
    y = np.stack([released.column(name).to_numpy() for name in names], axis=1)
    everybody = np.stack([original.column(name).to_numpy() for name in names], axis=1)
    linkage, tried = record_linkage(everybody, y, own, stream=stream)
    return {
        "error": {name: column_error(x[:, i], y[:, i]) for i, name in enumerate(names)},
        "sse_paper": sse_paper(x, y),
        "record_linkage_percent": linkage,
        "record_linkage_sample": tried,
    }


def column_error(original: Numbers, released: Numbers) -> float:
    """Mean squared difference over the variance of the original; 1.0 is no better than publishing the mean."""
    variance = float(np.var(original))
    return float(np.mean((original - released) ** 2)) / variance if variance > 0 else 0.0


def sse_paper(original: Numbers, released: Numbers) -> float:
    """IDP24's mean SSE over the columns of two matrices: mean of (1/m^2) sum_a ((x_a - y_a) / var_a)^2, literally."""
    variances = np.var(original, axis=0)
    kept = variances > 0
    scaled = (original[:, kept] - released[:, kept]) / variances[kept]
    return float(np.mean(np.sum(scaled * scaled, axis=1))) / original.shape[1] ** 2


def record_linkage(
    original: Numbers,
    released: Numbers,
    own: npt.NDArray[np.intp],
    *,
    stream: NoiseStream,
    groups: npt.NDArray[np.int64] | None = None,
) -> tuple[float, int]:
    """The percentage of released records whose own original is among the nearest ones (ties 1/|G|), and how many were tried.

    KDP13's measure, Euclidean on z-scores of the original; `own[i]` is the original of released record i. Of more than 2,000
    released records a random sample is tried. With `groups`, the group of each original, only originals of the own one count.
    """
    from scipy.spatial import KDTree

    deviation = np.std(original, axis=0)
    deviation[deviation == 0] = 1
    tried = shuffled_positions(len(released), stream)[:LINKAGE_SAMPLE]
    points, known = released[tried] / deviation, original / deviation
    if groups is not None:  # so far apart that no other group is ever nearer
        apart = groups * (4 * float(np.abs(np.concatenate([known, points])).max(initial=0)) * np.sqrt(known.shape[1]) + 1)
        known, points = np.column_stack([known, apart]), np.column_stack([points, apart[own[tried]]])
    tree = KDTree(known, compact_nodes=False, balanced_tree=False)
    distances, _ = tree.query(points)
    linked = 0.0
    for nearest, mine in zip(tree.query_ball_point(points, distances * (1 + 1e-9)), own[tried], strict=True):
        linked += 1 / len(nearest) if mine in nearest else 0.0
    return 100 * linked / len(tried), len(tried)
