"""What is true of all records, by what is of each random part of them. Every figure has a rule of its own: one without raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from release_pipeline.stages.strategies.strategy import Figures

Ints: TypeAlias = npt.NDArray[np.int64]
Numbers: TypeAlias = npt.NDArray[np.float64]
ERRORS = ("error", "error_low", "error_high")
EVIDENCE: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "records": sum,
    "clusters": sum,
    "clusters_without_noise": sum,
    "scale_smallest": min,
    "scale_median": max,
    "scale_largest": max,
    "loss_centroid": max,
    "loss_column": max,
    "loss_table": max,
    "epsilon": lambda shares: shares[0],  # the same in every part: one change of a record is in one of them
}


def merge_evidence(of_parts: Sequence[Figures]) -> Figures:
    """Counts added up; of scales and losses the extremes, and of the medians of scales the largest."""
    return {
        name: {
            "parts": len(of_parts),
            **{key: EVIDENCE[key]([part[name][key] for part in of_parts]) for key in of_parts[0][name]},
        }
        for name in of_parts[0]
    }


def merge_expected(of_parts: Sequence[Figures], records: Sequence[Ints], numbers: Callable[[str], Numbers]) -> Figures:
    """Shares, distances and means by the records of each part; mean squares over the variance of all of them, as the method sees
    them. `records`: which ones are in each part; `numbers`: those of a noise column, on its grid."""
    merged: Figures = {}
    weights = [len(rows) / sum(map(len, records)) for rows in records]
    for name in of_parts[0]:
        figures = {key: [part[name][key] for part in of_parts] for key in of_parts[0][name]}
        merged[name] = {key: _MEANS[key](values, weights) for key, values in figures.items() if key not in ERRORS}
        errors = [key for key in ERRORS if key in figures]
        if not errors:
            continue
        known = numbers(name)
        values = [known[rows][~np.isnan(known[rows])] for rows in records]  # those that have a value
        spread = np.multiply([float(np.var(own)) if len(own) else 0.0 for own in values], weights)
        whole = float(np.var(np.concatenate(values))) if sum(map(len, values)) else 0.0
        for key in errors:  # the range of the whole is at most as wide as those of the parts together
            is_known = None not in figures[key]
            merged[name][key] = (float(np.dot(figures[key], spread)) / whole if whole > 0 else 0.0) if is_known else None
    return merged


def _mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.dot(known, weights)) if len(known) == len(values) else None


def _mean_of_lists(values: Sequence[Sequence[float]], weights: Sequence[float]) -> list[float]:
    """The shares of all records at each atom are the mean of those of the parts, by their number of records."""
    return np.dot(weights, values).tolist()


_MEANS: Mapping[str, Callable[[Sequence[Any], Sequence[float]], Any]] = {
    "atom_share": _mean,
    "ks": _mean,
    "share": _mean,
    "at_atoms": _mean_of_lists,
}
