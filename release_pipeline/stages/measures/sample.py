"""Records that stand for others: what becomes of weighted figures, and how many of who is alone in the sample are alone in the
population. Weights are those of the records; a released table is weighted by its own, as an analyst would."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.privacy.groups import group_by
from release_pipeline.privacy.samples import risk_in_population, weighted_mean, weighted_quantiles
from release_pipeline.stages.measures.features import encode_entries

Numbers = npt.NDArray[np.float64]
SHARES = (0.25, 0.5, 0.75)


def read_weights(column: pa.ChunkedArray) -> Numbers:
    """A column of weights as numbers, whatever it is kept as; NaN where a cell is blank."""
    return column.cast(pa.float64()).to_numpy()


def measure_sample(
    name: str,
    columns: Iterable[tuple[str, Iterable[tuple[Numbers, Numbers]]]],
    quasi: Iterable[pa.ChunkedArray],
    weights: Numbers,
) -> dict[str, Any]:
    """`columns`: of each masked column values and weights, of the original and of the released table, looked at one after the
    other. `quasi`: the released quasi-identifiers, record by record with the `weights` of their originals."""
    found: dict[str, Any] = {"weight": name, "weighted": {}}
    for column, sides in columns:
        found["weighted"][column] = {
            side: _describe(*values) for side, values in zip(("original", "released"), sides, strict=True)
        }
    rest = iter(quasi)
    first = next(rest, None)
    if first is not None and len(weights):
        group = group_by(encode_entries([column])[0] for column in chain([first], rest))
        found["population"] = {"records": len(weights), **asdict(risk_in_population(group, weights))}
    return found


def _describe(values: Numbers, weights: Numbers) -> dict[str, float | None]:
    """Mean and quartiles, with weights and the mean without."""
    known = np.isfinite(weights)
    values, weights = values[known], weights[known]
    if not len(values) or weights.sum() == 0:
        return {"mean": None, "plain": None, "low": None, "median": None, "high": None}
    low, median, high = weighted_quantiles(values, weights, SHARES)
    return {"mean": weighted_mean(values, weights), "plain": float(values.mean()), "low": low, "median": median, "high": high}
