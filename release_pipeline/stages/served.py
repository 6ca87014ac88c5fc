"""What readers ask of a column first, as it is to be expected: its quantiles, and its means by group. From simulated noise before
anything is charged, only where a policy sets a limit. Confidential, like every figure against the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.privacy.grid import IntArray
from release_pipeline.stages.compared import Read
from release_pipeline.stages.measures.sample import read_weights
from release_pipeline.stages.measures.subgroups import LEAST

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)  # whose quantiles a limit is for
ROUNDS = 9  # simulated releases
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Served:
    """The groups that means are looked at by: the place of each record's group, a column of groups after the other, -1 where it
    has none; and the weights of records, where they have some."""

    groups: tuple[IntArray, ...] = ()
    weights: Numbers | None = field(default=None)


def is_limited(name: str, policy: Policy) -> bool:
    """Whether anything of a column is to be expected here."""
    return name in policy.gates.quantile or name in policy.gates.group_mean


def read_served(policy: Policy, read: Read) -> Served:
    """The groups that the policy names, of at least ten records each, and the weight."""
    groups: list[IntArray] = []
    for name in policy.audit.groups if policy.gates.group_mean else ():
        texts = read("records", [name]).column(0).combine_chunks().cast(pa.string()).dictionary_encode()
        place = texts.indices.fill_null(-1).to_numpy().astype(np.int64)
        counts = np.bincount(place[place >= 0], minlength=len(texts.dictionary))
        groups.append(np.where((place >= 0) & (counts[np.maximum(place, 0)] >= LEAST), place, -1))
    weight = policy.weight
    weights = None if weight is None or weight in policy.noise_columns else read_weights(read("records", [weight]).column(0))
    return Served(tuple(groups), weights)


def expect_served(
    name: str, policy: Policy, simulated: Iterable[Numbers], numbers: Numbers, cluster: npt.NDArray[np.intp], served: Served
) -> dict[str, float | None]:
    """The largest mean absolute difference of a quantile, and of a mean in a group, over simulated releases; of records that have
    a value, NaN standing for none. `simulated`: a value for each cluster, release by release; `cluster`: that of each record."""
    wants = {"quantile": name in policy.gates.quantile, "group_mean": name in policy.gates.group_mean}
    if not any(wants.values()):
        return {}
    off: dict[str, list[Numbers]] = {figure: [] for figure, is_wanted in wants.items() if is_wanted}
    for values in simulated:
        released: Numbers = values[cluster]
        if "quantile" in off:
            off["quantile"].append(np.abs(_quantiles(released) - _quantiles(numbers)))
        if "group_mean" in off:
            off["group_mean"].append(np.abs(_means(released, served) - _means(numbers, served)))
    return {figure: _largest(found) for figure, found in off.items()}


def _quantiles(numbers: Numbers) -> Numbers:
    """Those of the records that have a value."""
    known = numbers[~np.isnan(numbers)]
    return np.quantile(known, SHARES, method="inverted_cdf") if len(known) else np.full(len(SHARES), np.nan)


def _means(numbers: Numbers, served: Served) -> Numbers:
    """Of every group the mean, and with weights the weighted one too, of the records that have a value."""
    found: list[Numbers] = []
    is_known = ~np.isnan(numbers)
    ways = [np.ones(len(numbers))] + ([] if served.weights is None else [np.nan_to_num(served.weights)])
    for place in served.groups:
        use = is_known & (place >= 0)
        size = int(place.max(initial=-1)) + 1
        for weights in ways:
            total = np.bincount(place[use], weights[use], size)
            sums = np.bincount(place[use], weights[use] * numbers[use], size)
            found.append(np.divide(sums, total, out=np.full(size, np.nan), where=total > 0))
    return np.concatenate(found) if found else np.empty(0)


def _largest(found: Sequence[Numbers]) -> float | None:
    """The largest mean over releases; None where there is no such figure."""
    if not found or not found[0].size:
        return None
    means = np.mean(np.stack(found), axis=0)
    known = means[~np.isnan(means)]
    return float(known.max()) if len(known) else None
