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


@np.errstate(over="ignore", invalid="ignore")  # errors whose squares no float holds are none
def measure_subgroups(
    names: Sequence[str],
    labels: tuple[Labels, Labels, Labels],
    columns: Iterable[tuple[str, GroupedColumn]],
) -> list[dict[str, Any]]:
    """Each group with its records before and after, and of each column the means and the error, worst served first.

    `labels`, places among `names`: the groups of the original records; those that the released ones are said to be in; and those
    that the released ones truly are in. Columns are looked at one after the other. The means are of the records said to be in a
    group; the error is of the people in it: the mean square of what became of their own records, over the variance of the column,
    None where none of them has a value.
    """
    found: list[dict[str, Any]] = []
    measured: list[tuple[int, dict[str, Any]]] = []
    counts = [np.bincount(side[side != NO_GROUP], minlength=len(names)).tolist() for side in labels]
    for number, (label, was, said, true) in enumerate(zip(names, *counts, strict=True)):
        if not was and not true:
            continue
        group: dict[str, Any] = {"label": label, "records": was, "released": said, "columns": {}}
        if min(was, said, true) >= LEAST:
            measured.append((number, group))
        found.append(group)
    whole: dict[str, float | None] = {}
    for name, column in columns:
        squares = _squares(column)
        whole[name] = _mean(squares, np.ones(len(squares), dtype=np.bool_))
        for number, group in measured:
            was, said, true = (side == number for side in labels)
            group["columns"][name] = {
                "original": _mean(column.before, was),
                "released": _mean(column.after, said),
                "error": _mean(squares, true),
            }
        del column, squares
    return sorted(found, key=lambda group: -_worst(group, whole))


def _mean(values: Numbers, among: Flags) -> float | None:
    among = among & ~np.isnan(values)
    return float(np.mean(values[among])) if among.any() else None


def _squares(column: GroupedColumn) -> Numbers:
    """The square of how far each record was moved, over the variance of the column; of a constant column nothing."""
    off = column.after - column.own
    return off**2 / column.variance if column.variance > 0 else off * 0.0


def _worst(group: dict[str, Any], whole: Mapping[str, float | None]) -> float:
    """How many times the error of everybody a group's is, in the column where that is most; -1 where nothing is measured."""
    columns: Mapping[str, Mapping[str, float | None]] = group["columns"]
    return max(((found["error"] or 0.0) / (whole[name] or math.inf) for name, found in columns.items()), default=-1.0)
