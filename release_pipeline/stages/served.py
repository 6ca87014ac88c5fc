"""What readers ask of a column first, as it is to be expected: its means by group, where a policy limits them, and
the error of each declared group. From simulated noise before anything is charged. Confidential, like every figure against the
original."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.privacy.grid import IntArray
from release_pipeline.privacy.utility import variance_of
from release_pipeline.stages.compared import Read
from release_pipeline.stages.measures.sample import read_weights
from release_pipeline.stages.measures.subgroups import LEAST

ROUNDS = 9  # simulated releases
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Served:
    """The groups that means and errors are looked at by: the place of each record's group, a column of groups after the other, -1
    where it has none; and the weights of records, where they have some. `names`: the column of each, and its groups' labels."""

    groups: tuple[IntArray, ...] = ()
    weights: Numbers | None = field(default=None)
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()


def is_limited(name: str, policy: Policy) -> bool:
    """Whether anything of a column is to be expected here."""
    return name in policy.gates.group_mean or are_grouped(policy)


def are_grouped(policy: Policy) -> bool:
    """Whether the errors of declared groups are to be expected: of all records together, not of random parts of them."""
    return bool(policy.audit.groups) and policy.parts == 1


def read_served(policy: Policy, read: Read) -> Served:
    """The groups that the policy names, of at least ten records each, and the weight. Of a swapped column there are none: what is
    expected is of each record's own group, and its entries change places."""
    groups: list[IntArray] = []
    names: list[tuple[str, tuple[str, ...]]] = []
    for name in policy.audit.groups if policy.gates.group_mean or are_grouped(policy) else ():
        if name in policy.swapped_columns:
            continue
        place, labels = place_groups(read("records", [name]).column(0))
        groups.append(place)
        names.append((name, labels))
    weight = policy.weight
    weights = None if weight is None or weight in policy.noise_columns else read_weights(read("records", [weight]).column(0))
    return Served(tuple(groups), weights, tuple(names))


def place_groups(entries: pa.ChunkedArray) -> tuple[IntArray, tuple[str, ...]]:
    """The place of each record's group among the labels; -1 where it has none, or one of fewer than ten records."""
    texts = entries.combine_chunks().cast(pa.string()).dictionary_encode()
    place = texts.indices.fill_null(-1).to_numpy().astype(np.int64)
    counts = np.bincount(place[place >= 0], minlength=len(texts.dictionary))
    return np.where((place >= 0) & (counts[np.maximum(place, 0)] >= LEAST), place, -1), tuple(texts.dictionary.to_pylist())


def expect_served(
    name: str,
    policy: Policy,
    simulated: Iterable[Numbers],
    numbers: Numbers,
    cluster: npt.NDArray[np.integer[Any]],
    served: Served,
) -> dict[str, Any]:
    """The largest mean absolute difference of a mean in a group, over simulated releases, and the mean error of
    each declared group; of records that have a value, NaN standing for none. `simulated`: a value for each cluster, release by
    release; `cluster`: that of each record."""
    has_groups = bool(served.names) and are_grouped(policy)
    wants_means = name in policy.gates.group_mean
    if not wants_means and not has_groups:
        return {}
    off: list[Numbers] = []
    squares: list[Numbers] = []
    for values in simulated:
        released: Numbers = values[cluster]
        if wants_means:
            off.append(np.abs(_means(released, served) - _means(numbers, served)))
        if has_groups:
            squares.append(np.square(released - numbers))
    found: dict[str, Any] = {"group_mean": _largest(off)} if wants_means else {}
    return found | (_expect_errors(squares, numbers, served) if squares else {})


def _expect_errors(squares: Sequence[Numbers], numbers: Numbers, served: Served) -> dict[str, Any]:
    """The errors of groups from the squared errors of records, release by release."""
    known = numbers[~np.isnan(numbers)]
    variance = variance_of(known) if len(known) else 0.0
    each = [errors_of_groups(released, variance, served.groups, served.names) for released in squares]
    means = {
        by: {label: float(np.mean([one[by][label] for one in each if label in one[by]])) for label in own}
        for by, own in each[0].items()
    }
    return summarise_groups(means)


def errors_of_groups(
    squares: Numbers, variance: float, groups: Sequence[IntArray], names: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, dict[str, float]]:
    """The mean square of each group's records over the variance of the whole column, by column of groups and label; of those
    where somebody has a value, NaN standing for none."""
    found: dict[str, dict[str, float]] = {}
    for place, (by, labels) in zip(groups, names, strict=True):
        use = (place >= 0) & ~np.isnan(squares)
        counts = np.bincount(place[use], minlength=len(labels))
        sums = np.bincount(place[use], squares[use], minlength=len(labels))
        found[by] = {
            label: float(total) / count / variance if variance > 0 else 0.0
            for label, total, count in zip(labels, sums.tolist(), counts.tolist(), strict=True)
            if count
        }
    return found


def summarise_groups(errors: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """As evidence keeps them: `group_error`, that of the group that is served worst, and all of them."""
    every = [error for own in errors.values() for error in own.values()]
    return {"group_error": max(every) if every else None, "group_errors": {by: dict(own) for by, own in errors.items()}}


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
