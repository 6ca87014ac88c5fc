"""Derived columns of the table `raw`: made once it is loaded, so that whatever reads it finds them beside the delivered ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb

from release_pipeline.policy.derivations import (
    Bands,
    Between,
    Derived,
    Difference,
    Limit,
    Merge,
    PeriodOf,
    Sum,
    order_derivations,
)
from release_pipeline.policy.kinds.missing import number_of_code
from release_pipeline.store.connections import source_errors
from release_pipeline.store.raw import RawTable
from release_pipeline.store.sql import Identifier, statement


def derive_columns(connection: duckdb.DuckDBPyConnection, source: str, derive: Mapping[str, Derived]) -> None:
    """Add every derived column whose inputs are there; of absent ones the header tells."""
    for name in order_derivations(derive):
        table, how = RawTable(connection, source), derive[name]
        if all(column in table.kinds for column in how.inputs):
            text, values = _make(table, name, how)
            with source_errors(source):
                connection.execute(text, values)


def _make(table: RawTable, name: str, how: Derived) -> tuple[str, dict[str, Any]]:
    names: dict[str, Identifier]
    numbers = [table.number_of(column) for column in how.inputs] if how.reads == "number" else []
    codes = [float(code) for code in map(number_of_code, how.codes) if not isinstance(code, str)]
    match how:
        case Bands():
            values = {"codes": codes, "edges": [float(edge) for edge in how.at], "labels": list(how.outputs)}
            return statement("derive/create_bands", number=numbers[0], derived=name), values
        case Limit():
            ends = {side: None if end is None else float(end) for side, end in (("bottom", how.bottom), ("top", how.top))}
            return statement("derive/create_limit", number=numbers[0], derived=name), {"codes": codes, **ends}
        case Sum():
            return statement("derive/create_sum", numbers=numbers, derived=name), {"codes": codes}
        case Difference():
            return statement("derive/create_difference", numbers=numbers, derived=name), {"codes": codes}
        case Between():
            entries, instants = ([read(column) for column in how.between] for read in (table.entry_of, table.instant_of))
            names = {"first": instants[0], "second": instants[1], "entry": entries[0], "other": entries[1]}
            return statement("derive/create_between", **names, derived=name), {"codes": list(how.codes), "unit": how.unit}
        case Merge():
            entries, groups = list(how.groups), list(how.groups.values())
            other = None if how.other is None else str(how.other)
            values = {"codes": list(how.codes), "entries": entries, "groups": groups, "other": other}
            return statement("derive/create_merge", entry=table.entry_of(how.merge), derived=name), values
        case PeriodOf():
            names = {"entry": table.entry_of(how.period), "instant": table.instant_of(how.period)}
            return statement("derive/create_period", **names, derived=name), {"codes": list(how.codes), "every": how.every}
        case _:
            raise TypeError(f"nothing makes a column by {type(how).__name__}")


def count_unread(table: RawTable, derive: Mapping[str, Derived]) -> dict[str, dict[str, int]]:
    """How many records have something in an input that cannot be read as what it must be, by the derived column and the input."""
    found: dict[str, dict[str, int]] = {}
    for name, how in derive.items():
        found[name] = {column: _count(table, how, column) for column in how.inputs if column in table.kinds}
    return found


def _count(table: RawTable, how: Derived, column: str) -> int:
    if isinstance(how, Merge):
        listed = [str(entry) for entries in how.into.values() for entry in entries]
        return 0 if how.other is not None else table.count_unlisted(column, listed, codes=how.codes)
    return table.count_unreadable(column, read_as="dates" if how.reads == "date" else "numbers", codes=how.codes)
