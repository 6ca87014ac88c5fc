"""Recomputed columns: derived columns made of what is published, by the functions that the policy declares. The same are made of
the records by the database (`store.derived`); a test compares both."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from release_pipeline.policy import Policy
from release_pipeline.policy.derivations import (
    Bands,
    Derived,
    Difference,
    Limit,
    Merge,
    PeriodOf,
    Sum,
    moment_of,
    order_derivations,
)
from release_pipeline.policy.kinds.missing import number_of_code
from release_pipeline.policy.periods import name_period
from release_pipeline.privacy.grid import FloatArray
from release_pipeline.privacy.recompute import add_signed

_compute: Any = pyarrow.compute  # its functions are made at run time
Column: TypeAlias = Any  # an Arrow array, whose types are unknown to pyright


def recompute(table: pa.Table, policy: Policy) -> dict[str, Column]:
    """The recomputed columns of a published table, each made after what it is made of. Where an input is empty, so is what is
    made of it. Whole numbers may be texts, as in a CSV."""
    found: dict[str, Column] = {name: table.column(name).combine_chunks() for name in policy.released_columns}
    for name in order_derivations(policy.derive):
        if name in policy.recomputed_columns:
            how = policy.derive[name]
            found[name] = make_column(how, [found[column] for column in how.inputs])
    return {name: found[name] for name in policy.recomputed_columns}


def make_column(how: Derived, inputs: list[Column]) -> Column:
    """One derived column of these."""
    match how:
        case Sum():
            return _numbers(add_signed([(1, read_numbers(column, how.codes)) for column in inputs]))
        case Difference():
            signs = [1, *(-1 for _ in inputs[1:])]
            terms = [(sign, read_numbers(column, how.codes)) for sign, column in zip(signs, inputs, strict=True)]
            return _numbers(add_signed(terms))
        case Limit():
            low, high = (None if end is None else float(end) for end in (how.bottom, how.top))
            return _numbers(np.clip(read_numbers(inputs[0], how.codes), low, high))
        case Bands():
            numbers = read_numbers(inputs[0], how.codes)
            places = np.searchsorted([float(edge) for edge in how.at], numbers, side="right")
            return pa.array(list(how.outputs), pa.string()).take(pa.array(places, mask=np.isnan(numbers)))
        case Merge():
            other, groups = None if how.other is None else str(how.other), how.groups
            return _by_entry(inputs[0], lambda entry: None if entry in how.codes else groups.get(entry, other))
        case PeriodOf():
            return _by_entry(inputs[0], lambda entry: _name(how, entry))
        case _:
            raise TypeError(f"nothing makes a column by {type(how).__name__}")


def read_numbers(column: Column, codes: tuple[str, ...] = ()) -> FloatArray:
    """A published column as numbers; NaN where it is empty, or one of the codes."""
    if pa.types.is_string(column.type):
        numbers: FloatArray = _by_entry(column, lambda entry: None if entry in codes else _number(entry), pa.float64()).to_numpy(
            zero_copy_only=False
        )
    else:
        numbers = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    known = [float(code) for code in map(number_of_code, codes) if isinstance(code, Decimal)]
    return np.where(np.isin(numbers, known), np.nan, numbers) if known else numbers


def _number(entry: str) -> float | None:
    number = number_of_code(entry)
    return float(number) if isinstance(number, Decimal) else None


def _name(how: PeriodOf, entry: str) -> str | None:
    moment = None if entry in how.codes else moment_of(entry)
    return None if moment is None else name_period(how.every, moment)


def _by_entry(column: Column, make: Callable[[str], Any], kind: Any = None) -> Column:
    """What becomes of each entry, made once for all that are equal."""
    encoded = column.cast(pa.string()).dictionary_encode()
    made = pa.array([make(entry) for entry in encoded.dictionary.to_pylist()], kind or pa.string())
    return made.take(encoded.indices)


def _numbers(values: FloatArray) -> Column:
    return pa.array(values, pa.float64(), mask=np.isnan(values))
