"""What a steward may write shortly, written out before a policy is validated: lists from files, and dates as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from release_pipeline.errors import ReleasePipelineError
from release_pipeline.policy.hierarchies import Read
from release_pipeline.policy.kinds.dates import count_targets, count_units, is_dated
from release_pipeline.policy.lists import names_list, read_named
from release_pipeline.policy.text import Path, Problem
from release_pipeline.privacy.dates import Clock

TOLD = object()  # in the place of a part whose fault is told already


def list_lists(columns: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The lists of entries that are taken from a file, by column."""
    for name, column in cast(dict[str, Any], columns).items() if isinstance(columns, dict) else ():
        if isinstance(column, dict) and names_list(values := cast(dict[str, Any], column).get("values")):
            yield name, cast(dict[str, Any], values)


def expand_lists(raw: dict[str, Any], read: Read, problems: list[Problem]) -> dict[str, Any]:
    """The policy with the entries of every list that is taken from a file."""
    columns = cast(Any, raw.get("columns"))
    made: dict[str, Any] = {}
    for name, values in list_lists(columns):
        at: Path = ("columns", name, "values")
        try:
            made[name] = {**columns[name], "values": read_named(values, read)}
        except ReleasePipelineError as error:
            made[name] = {**columns[name], "values": TOLD}
            key = error.where if error.where in values else "file"
            file = f" ({error.where})" if error.where and key != error.where else ""
            problems.append(((*at, key), f"{error.what.rstrip('.')}{file}.", error.remedy))
    return {**raw, "columns": {**columns, **made}} if made else raw


def expand_dates(raw: dict[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """The policy with the masked columns of dates as numbers, and what models are to predict of them."""
    columns, clocks = cast(Any, raw.get("columns")), dict[str, Clock]()
    made: dict[str, Any] = {}
    for name, column in cast(dict[str, Any], columns).items() if isinstance(columns, dict) else ():
        if isinstance(column, dict) and is_dated(cast(dict[str, Any], column)):
            counted = count_units(cast(dict[str, Any], column), ("columns", name), problems)
            made[name] = {**cast(dict[str, Any], column), "domain": TOLD} if counted is None else counted
            if counted is not None:
                clocks[name] = Clock.read(**counted["dated"])
    return count_targets({**raw, "columns": {**columns, **made}}, clocks, problems) if made else raw
