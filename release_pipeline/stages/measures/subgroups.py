"""How well each declared group is served: its means before and after, and the error of its own records.

A method that is good on the whole can be bad for a small group, whose records share clusters with others or are pulled to their
mean; NIST SP 800-226 asks for it. Figures against the original, and so internal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

NO_GROUP = -1  # where a record has no entry
LEAST = 10  # records, before and after: of fewer nothing is measured
Numbers: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Labels: TypeAlias = npt.NDArray[np.int32]  # places among names


@dataclass(frozen=True, slots=True)
class GroupedColumn:
    """A column before and after: `before` as many as there are labels of originals, `after` as there are released labels, and
    `own` the value that the method saw of each released record; NaN where a record has none. `variance`: of all that the method
    saw."""

    before: Numbers
    after: Numbers
    own: Numbers
    variance: float


def measure_subgroups(
    names: Sequence[str],
    labels: tuple[Labels, Labels, Labels],
    columns: Iterable[tuple[str, GroupedColumn]],
    *,
    weights_before: Numbers | None = None,
    weights_after: Numbers | None = None,
    weights_own: Numbers | None = None,
    of_records: bool = True,
) -> list[dict[str, Any]]:
    """Each group with its records before and after, and of each column the means and the error, worst served first.

    `labels`, places among `names`: the groups of the original records; those that the released ones are said to be in; and those
    that the released ones truly are in. Columns are looked at one after the other. The means are of the records said to be in a
    group; the error is of the people in it: the mean square of what became of their own records, over the variance of the column,
    None where none of them has a value. `chance`: the standard deviation of that of as many records drawn at random, whose mean
    is the error of all; `above`: how many of these it lies above; `absolute`: the mean absolute error in the column's unit. Where
    weights are given there are weighted figures beside the plain ones; `weights_own` are those of the originals of released
    records. Without `of_records` errors are of ranks within groups, and random groups of records tell nothing of them.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # errors whose squares no float holds are none
        return _measure(names, labels, columns, (weights_before, weights_after, weights_own), of_records)


def _measure(
    names: Sequence[str],
    labels: tuple[Labels, Labels, Labels],
    columns: Iterable[tuple[str, GroupedColumn]],
    weights: tuple[Numbers | None, Numbers | None, Numbers | None],
    of_records: bool,
) -> list[dict[str, Any]]:
    weights_before, weights_after, weights_own = weights
    found: list[dict[str, Any]] = []
    measured: list[tuple[int, dict[str, Any]]] = []
    counts = [np.bincount(side[side != NO_GROUP], minlength=len(names)).tolist() for side in labels]
    for number, (label, was, said, true) in enumerate(zip(names, *counts, strict=True)):
        if not was and not true:
            continue
        group: dict[str, Any] = {"label": label, "records": was, "released": said, "columns": {}}
        if weights_before is not None and weights_after is not None:
            before, after = labels[0] == number, labels[1] == number
            group |= {
                "weight": float(np.nansum(weights_before[before])),
                "released_weight": float(np.nansum(weights_after[after])),
            }
        if min(was, said, true) >= LEAST:
            measured.append((number, group))
        found.append(group)
    whole: dict[str, float | None] = {}
    for name, column in columns:
        squares, everybody = _squares(column), np.ones(len(labels[2]), dtype=np.bool_)
        whole[name] = _mean(squares, everybody)
        apart = np.abs(column.after - column.own)
        for number, group in measured:
            was, said, true = (side == number for side in labels)
            group["columns"][name] = {
                "original": _mean(column.before, was),
                "released": _mean(column.after, said),
                **(_compare(squares, true, whole[name]) if of_records else {"error": _mean(squares, true)}),
                "absolute": _mean(apart, true),
                **_weigh(column, was, said, weights_before, weights_after),
                **({} if weights_own is None else {"weighted_error": _mean(squares, true, weights_own)}),
            }
        del column, squares, apart
    return sorted(found, key=lambda group: -_worst(group, whole))


def _weigh(
    column: GroupedColumn, was: Flags, said: Flags, weights_before: Numbers | None, weights_after: Numbers | None
) -> dict[str, float | None]:
    """The weighted means of a group, where there are weights."""
    if weights_before is None or weights_after is None:
        return {}
    return {
        "weighted_original": _mean(column.before, was, weights_before),
        "weighted_released": _mean(column.after, said, weights_after),
    }


def _mean(values: Numbers, among: Flags, weights: Numbers | None = None) -> float | None:
    among = among & ~np.isnan(values)
    if weights is None:
        return float(np.mean(values[among])) if among.any() else None
    among &= ~np.isnan(weights)
    total = float(weights[among].sum())
    return float(weights[among] @ values[among]) / total if total > 0 else None


def _squares(column: GroupedColumn) -> Numbers:
    """The square of how far each record was moved, over the variance of the column; of a constant column nothing."""
    off = column.after - column.own
    return off**2 / column.variance if column.variance > 0 else off * 0.0


def _compare(squares: Numbers, among: Flags, whole: float | None) -> dict[str, float | None]:
    """The error of a group, beside that of random groups of its size."""
    error, chance = _mean(squares, among), _chance(squares, among)
    above = None if error is None or whole is None or not chance else (error - whole) / chance
    return {"error": error, "chance": chance, "above": above}


def _chance(squares: Numbers, among: Flags) -> float | None:
    """The standard deviation of the error of a group of this size that is drawn at random from all released records with a value,
    each at most once: exactly s sqrt(1/n - 1/N), with s that of all N squares (over N - 1). Its mean is the error of all."""
    there = ~np.isnan(squares)
    size, every = int(np.count_nonzero(there & among)), int(np.count_nonzero(there))
    if not size or every == 1:
        return None
    return float(np.std(squares[there], ddof=1)) * math.sqrt(1 / size - 1 / every)


def _worst(group: dict[str, Any], whole: Mapping[str, float | None]) -> float:
    """How many times the error of everybody a group's is, in the column where that is most; -1 where nothing is measured."""
    columns: Mapping[str, Mapping[str, float | None]] = group["columns"]
    return max(((found["error"] or 0.0) / (whole[name] or math.inf) for name, found in columns.items()), default=-1.0)
