"""What became of columns that are tied by a rule: how many published records break it, before and after; and how far recomputed
columns lie from what the original records make."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from release_pipeline.policy import Policy
from release_pipeline.policy.derivations import Between, Derived, moment_of
from release_pipeline.policy.kinds import NoiseColumn
from release_pipeline.policy.ties import Tie, find_ties
from release_pipeline.privacy.dates import Unit, seconds_of
from release_pipeline.privacy.grid import FloatArray
from release_pipeline.privacy.utility import column_error, variance_of
from release_pipeline.stages.recompute import make_column, read_numbers

Flags = npt.NDArray[np.bool_]


def measure_ties(
    policy: Policy, came: pa.Table, seen: pa.Table, released: pa.Table, *, are_nobodys: bool = False
) -> dict[str, Any]:
    """Of three published forms of the same records, in the same order: as they came, as the method saw them, and as they are
    released. Nothing where there is neither. Where released ones `are_nobodys`, no row is another's, and means alone tell."""
    found: dict[str, Any] = {}
    if ties := find_ties(policy):
        found["ties"] = [
            {
                "name": tie.name,
                "words": tie.words,
                "before": count_broken(policy, tie, came),
                "after": count_broken(policy, tie, released),
            }
            for tie in ties
        ]
    if made := policy.recomputed_columns:
        found["recomputed"] = {name: _compare(seen.column(name), released.column(name), are_nobodys=are_nobodys) for name in made}
    return found


def count_broken(policy: Policy, tie: Tie, table: pa.Table) -> int:
    """How many records break the rule; none where something that it is about is missing."""
    return int(np.count_nonzero(_breaks(policy, tie, table)))


def _breaks(policy: Policy, tie: Tie, table: pa.Table) -> Flags:
    match tie.rule:
        case Between(between=dates, unit=unit):
            first, last = (count_units(table.column(name).combine_chunks(), unit) for name in dates)
            return _lie_apart(policy, tie.name, last - first, table.column(tie.name).combine_chunks())
        case Derived() as how:
            made = make_column(how, [table.column(name).combine_chunks() for name in how.inputs])
            return _differ(policy, tie.name, made, table.column(tie.name).combine_chunks())


def _differ(policy: Policy, name: str, made: Any, published: Any) -> Flags:
    """Where a column is not what was made; numbers lie on its grid. Where one of both is missing nothing is compared."""
    if policy.derive[name].is_text:
        pairs = zip(made.to_pylist(), published.to_pylist(), strict=True)
        return np.array([None not in pair and pair[0] != pair[1] for pair in pairs], dtype=np.bool_)
    return _lie_apart(policy, name, made.to_numpy(zero_copy_only=False), published)


def _lie_apart(policy: Policy, name: str, made: FloatArray, published: Any) -> Flags:
    """Where numbers are not what was made, on the grid of their column; with NaN nothing is."""
    column = policy.columns[name]
    half = float(column.grid) / 2 if isinstance(column, NoiseColumn) else 0.0
    return np.abs(made - read_numbers(published)) > half


def _read_moments(column: Any) -> FloatArray:
    found = [None if entry is None else moment_of(entry) for entry in column.cast(pa.string()).to_pylist()]
    return np.array([np.nan if moment is None else moment.timestamp() for moment in found], dtype=np.float64)


def count_units(column: Any, unit: Unit) -> FloatArray:
    """The unit that each date or time lies in, counted from 1970."""
    return np.floor(_read_moments(column) / seconds_of(unit))


def _compare(before: pa.ChunkedArray, after: pa.ChunkedArray, *, are_nobodys: bool) -> dict[str, float | None]:
    """Error over variance, mean absolute error, and means, of the records that have a value in both; of texts the share that has
    another one. Of nobody's rows the means."""
    one: Any = before.combine_chunks()
    other: Any = after.combine_chunks()
    there = one.is_valid().to_numpy(zero_copy_only=False) & other.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_string(one.type):
        if are_nobodys:
            return {"changed": None}
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        changed = sum(None not in pair and pair[0] != pair[1] for pair in pairs)
        return {"changed": changed / int(there.sum()) if there.any() else None}
    if are_nobodys:
        sides = [numbers[~np.isnan(numbers)] for numbers in map(read_numbers, (one, other))]
        means = (float(np.mean(numbers)) if len(numbers) else None for numbers in sides)
        return {"error": None, "absolute_error": None, **dict(zip(("original", "released"), means, strict=True))}
    x, y = (read_numbers(column)[there] for column in (one, other))
    if not len(x):
        return dict.fromkeys(("error", "absolute_error", "original", "released"))
    return {
        "error": column_error(x, y, variance=variance_of(x)),
        "absolute_error": float(np.mean(np.abs(x - y))),
        "original": float(np.mean(x)),
        "released": float(np.mean(y)),
    }
