"""The effect of a release on declared groups and their means, which readers look up first.

How well each declared group is served: its means before and after, and the error of its own records.

A method that is good overall can be bad for a small group, whose records share clusters with others or are pulled to their
mean; NIST SP 800-226 asks for it. Figures against the original, and so internal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.mechanisms.basis.grid import IntArray
from release_pipeline.mechanisms.basis.utility import variance_of
from release_pipeline.policy import Policy
from release_pipeline.rows.columns import MISSING, Read, number_cells, read_weights

NO_GROUP = -1  # where a record has no entry
LEAST = 10  # records, before and after: nothing is measured for fewer
Numbers: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Labels: TypeAlias = npt.NDArray[np.int32]  # positions in a list of names


@dataclass(frozen=True, slots=True)
class GroupedColumn:
    """A column before and after: `before` has a value for each original label, `after` for each released label, and `seen` is the
    value that the method saw of each released record; NaN for a record without a value. `variance`: of all values that the method
    saw."""

    before: Numbers
    after: Numbers
    seen: Numbers
    variance: float


@np.errstate(over="ignore", invalid="ignore")  # if squared errors overflow there is no error
def measure_subgroups(
    names: Sequence[str],
    labels: tuple[Labels, Labels, Labels],
    columns: Iterable[tuple[str, GroupedColumn]],
) -> list[dict[str, Any]]:
    """Return each group with its records before and after, and for each column the means and the error, worst served first.

    `labels`, positions in `names`: the groups of the original records; the released groups of the released records; and their
    true groups. Columns are read one after the other. The means are over the records released as members of a group; the error is
    over its true members: the mean square of how far their own records moved, over the variance of the column, None if none of
    them has a value.
    """
    groups: list[dict[str, Any]] = []
    measured: list[tuple[int, dict[str, Any]]] = []
    counts = [np.bincount(side[side != NO_GROUP], minlength=len(names)).tolist() for side in labels]
    for number, (label, was, released, true) in enumerate(zip(names, *counts, strict=True)):
        if not was and not true:
            continue
        group: dict[str, Any] = {"label": label, "records": was, "released": released, "columns": {}}
        if min(was, released, true) >= LEAST:
            measured.append((number, group))
        groups.append(group)
    whole: dict[str, float | None] = {}
    for name, column in columns:
        squares = _squares(column)
        whole[name] = _mean(squares, np.ones(len(squares), dtype=np.bool_))
        for number, group in measured:
            was, released, true = (side == number for side in labels)
            group["columns"][name] = {
                "original": _mean(column.before, was),
                "released": _mean(column.after, released),
                "error": _mean(squares, true),
            }
        del column, squares
    return sorted(groups, key=lambda group: -_worst(group, whole))


def _mean(values: Numbers, among: Flags) -> float | None:
    among = among & ~np.isnan(values)
    return float(np.mean(values[among])) if among.any() else None


def _squares(column: GroupedColumn) -> Numbers:
    """Return the square of how far each record moved, over the variance of the column; 0 for a constant column."""
    off = column.after - column.seen
    return off**2 / column.variance if column.variance > 0 else off * 0.0


def _worst(group: dict[str, Any], whole: Mapping[str, float | None]) -> float:
    """Return the largest ratio of a group's error to the error of everybody, over all columns; -1 if nothing is measured."""
    columns: Mapping[str, Mapping[str, float | None]] = group["columns"]
    return max(((found["error"] or 0.0) / (whole[name] or math.inf) for name, found in columns.items()), default=-1.0)


# The effect on means of groups: every column of numbers in every group of every column of categories, over the standard deviation
# of the numbers, compared with as many original records drawn again with replacement.

WORST = 5  # groups that are named
Codes = npt.NDArray[np.int32]  # the number of each record's group, `MISSING` if it is in none


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups of a column, and the group of each record before, after, and drawn again."""

    names: Sequence[str]
    was: Codes
    now: Codes
    redrawn: Codes

    @classmethod
    def of(cls, before: pa.ChunkedArray, after: pa.ChunkedArray, redrawn: npt.NDArray[np.intp]) -> Grouping:
        """Return the grouping by the texts of originals, ascending; blank cells are in no group."""
        known, was = number_cells(before)
        others, now = number_cells(after)
        texts = [str(text) for text in known.to_pylist()]
        names = sorted({text for text in texts if text})
        place = {text: number for number, text in enumerate(names)}
        was, now = (
            np.array([*(place.get(text, MISSING) for text in told), MISSING], dtype=np.int32)[numbers]
            for told, numbers in ((texts, was), ([str(text) for text in others.to_pylist()], now))
        )
        return cls(names, was, now, was[redrawn])


def measure_group_means(
    labels: Mapping[str, Grouping],
    numbers: Iterable[tuple[str, tuple[Numbers, Numbers]]],
    redrawn: npt.NDArray[np.intp],
) -> dict[str, Any] | None:
    """Return how far means are off, on average over all compared groups and weighted by their records, with that of records drawn
    again; and the worst of all. `numbers`: columns before and after, one after the other. None if nothing can be compared."""
    offs, chances, weights = list[float](), list[float](), list[int]()
    named: list[dict[str, Any]] = []
    for column, (before, after) in numbers:
        known = before[np.isfinite(before)]
        spread = float(np.sqrt(variance_of(known))) if len(known) else 0.0
        del known
        if not spread > 0:
            continue
        drawn = before[redrawn]
        for by, group in labels.items():
            sides = ((group.was, before), (group.now, after), (group.redrawn, drawn))
            sides_means = [_find_means(*side, len(group.names)) for side in sides]
            for at, label in enumerate(group.names):
                if min(int(counts[at]) for _, counts in sides_means) < LEAST:
                    continue
                original, released, again = (float(means[at]) for means, _ in sides_means)
                offs.append(abs(released - original) / spread)
                chances.append(abs(again - original) / spread)
                weights.append(int(sides_means[0][1][at]))
                one = {"by": by, "label": label, "column": column, "original": original, "released": released}
                named.append({**one, "off": offs[-1], "records": weights[-1]})
    if not named:
        return None
    mean, by_chance = (float(np.average(each, weights=weights)) for each in (offs, chances))
    worst = sorted(named, key=lambda group: -group["off"])[:WORST]
    return {"mean": mean, "by_chance": by_chance, "compared": len(named), "worst": worst}


def _find_means(codes: Codes, values: Numbers, groups: int) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """Return the mean of each group, and how many of its records have a value; 0 if none has."""
    known = np.isfinite(values) & (codes != MISSING)
    counts = np.bincount(codes[known], minlength=groups)
    sums = np.bincount(codes[known], weights=values[known], minlength=groups)
    return sums / np.maximum(counts, 1), counts


# Forecasts of what readers look up first: means by group, if a policy limits them, and the error of each declared group. They
# come from simulated noise before anything is charged. Confidential, like every figure against the original.


ROUNDS = 9  # simulated releases


@dataclass(frozen=True, slots=True)
class Served:
    """The groups for means and errors: the position of each record's group, one column of groups after the other, -1 if it has
    none; and the weights of records, if there are any. `names`: the column of each, and its groups' labels."""

    groups: tuple[IntArray, ...] = ()
    weights: Numbers | None = field(default=None)
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()


def is_limited(name: str, policy: Policy) -> bool:
    """Return whether any group figure of a column is forecast."""
    return name in policy.gates.group_mean or are_grouped(policy)


def are_grouped(policy: Policy) -> bool:
    """Return whether the errors of declared groups are forecast: for all records together, not for random parts of them."""
    return bool(policy.audit.groups) and policy.parts == 1


def read_served(policy: Policy, read: Read) -> Served:
    """Return the groups that the policy names, of at least ten records each, and the weight. A swapped column has none: forecasts
    are for each record's own group, and its entries are swapped."""
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
    """Return the position of each record's group among the labels; -1 if it has none, or one of fewer than ten records."""
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
    """Return the largest mean absolute difference of a mean in a group, over simulated releases, and the mean error of each
    declared group; over records that have a value, NaN meaning none. `simulated`: a value for each cluster, release by release;
    `cluster`: the cluster of each record."""
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
    """Return the errors of groups from the squared errors of records, release by release."""
    known = numbers[~np.isnan(numbers)]
    variance = variance_of(known) if len(known) else 0.0
    each = [errors_of_groups(released, variance, served.groups, served.names) for released in squares]
    means = {
        by: {label: float(np.mean([errors[by][label] for errors in each if label in errors[by]])) for label in own}
        for by, own in each[0].items()
    }
    return summarise_groups(means)


def errors_of_groups(
    squares: Numbers, variance: float, groups: Sequence[IntArray], names: Sequence[tuple[str, tuple[str, ...]]]
) -> dict[str, dict[str, float]]:
    """Return the mean square of each group's records over the variance of the whole column, by column of groups and label; only
    groups in which some record has a value (not NaN)."""
    errors: dict[str, dict[str, float]] = {}
    for place, (by, labels) in zip(groups, names, strict=True):
        use = (place >= 0) & ~np.isnan(squares)
        counts = np.bincount(place[use], minlength=len(labels))
        sums = np.bincount(place[use], squares[use], minlength=len(labels))
        errors[by] = {
            label: float(total) / count / variance if variance > 0 else 0.0
            for label, total, count in zip(labels, sums.tolist(), counts.tolist(), strict=True)
            if count
        }
    return errors


def summarise_groups(errors: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Return the errors as evidence keeps them: `group_error`, that of the worst served group, and all of them."""
    every = [error for own in errors.values() for error in own.values()]
    return {"group_error": max(every) if every else None, "group_errors": {by: dict(own) for by, own in errors.items()}}


def _means(numbers: Numbers, served: Served) -> Numbers:
    """Return the mean of every group, and with weights the weighted one too, over the records that have a value."""
    means: list[Numbers] = []
    is_known = ~np.isnan(numbers)
    ways = [np.ones(len(numbers))] + ([] if served.weights is None else [np.nan_to_num(served.weights)])
    for group in served.groups:
        use = is_known & (group >= 0)
        size = int(group.max(initial=-1)) + 1
        for weights in ways:
            total = np.bincount(group[use], weights[use], size)
            sums = np.bincount(group[use], weights[use] * numbers[use], size)
            means.append(np.divide(sums, total, out=np.full(size, np.nan), where=total > 0))
    return np.concatenate(means) if means else np.empty(0)


def _largest(differences: Sequence[Numbers]) -> float | None:
    """Return the largest mean over releases; None if there is no such figure."""
    if not differences or not differences[0].size:
        return None
    means = np.mean(np.stack(differences), axis=0)
    known = means[~np.isnan(means)]
    return float(known.max()) if len(known) else None
