"""The changes from one policy to another, as sentences: claim and budget first, then columns and texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

from release_pipeline.mechanisms.accounting.budget import format_nano
from release_pipeline.mechanisms.catalogue.spec import IDP, ZCDP
from release_pipeline.policy.file.about import describe_audience
from release_pipeline.policy.file.describe import describe_table
from release_pipeline.policy.file.model import Policy
from release_pipeline.policy.kinds.noise import write_dates
from release_pipeline.policy.plans.plan import describe_claim

Path: TypeAlias = tuple[str, ...]
_OF_COLUMN = ("label", "description", "unit", "question")
_PARTS = {"licence": "the licence", "publisher": "the publisher", "contact": "the contact", "citation": "how to cite the data"}


def _is_for_readers(path: Path) -> bool:
    """Return whether a change is one of the texts for readers."""
    return path[:1] == ("about",) or (path[:1] == ("columns",) and path[2:3] in [(part,) for part in (*_OF_COLUMN, "labels")])


def _describe_texts(path: Path, was: Any, is_now: Any) -> Iterator[str]:
    """Yield a sentence for the change; for a new or removed mapping one for each of its parts."""
    if isinstance(was, Mapping) or isinstance(is_now, Mapping):
        before = cast(Mapping[str, Any], was or {})
        after = cast(Mapping[str, Any], is_now or {})
        for key in [*before, *(key for key in after if key not in before)]:
            if before.get(key) != after.get(key):
                yield from _describe_texts((*path, key), before.get(key), after.get(key))
    elif was != is_now:
        yield f"{_name(path)}: {_describe_change(was, is_now)}"


def _name(path: Path) -> str:
    section, *steps = path
    if section == "columns":
        column, option, *entry = steps
        part = f"what {entry[0]} means" if entry else f"its {option}"
        return f"readers of column {column} are told {part}"
    name, *within = steps
    part = _PARTS.get(name, f"the {name.replace('_', ' ')}")
    return f"readers are told {part}" + (f" ({' '.join(within)})" if within else "")


def _describe_change(was: Any, is_now: Any) -> str:
    if was in (None, [], ""):
        return f'"{_text(is_now)}", which is new'
    if is_now in (None, [], ""):
        return f'nothing any more; it was "{_text(was)}"'
    return f'"{_text(is_now)}"; it was "{_text(was)}"'


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(part) for part in cast(list[Any], value))
    if isinstance(value, Mapping):
        return " ".join(_text(part) for part in cast(Mapping[str, Any], value).values() if part is not None)
    return str(value)


# The change of a policy as sentences.

SHOWN = 8  # changes of one hierarchy
LONGEST = 200  # letters of a list that is shown whole; a hierarchy may have thousands of rows


def describe_diff(old: Policy, new: Policy) -> Iterator[str]:
    """Yield the changes from `old` to `new`, the most important first; nothing if both have the same hash."""
    if old.canonical_hash() == new.canonical_hash():
        return
    was, is_now = old.claim.definition, new.claim.definition
    if was != is_now:
        other = "a weaker definition" if is_now.strength > was.strength else "a stronger definition"
        if {was.key, is_now.key} == {ZCDP.key, IDP.key}:
            other = "another definition, and neither implies the other"
        yield f"{other}: {was.name} becomes {is_now.name}; their epsilons cannot be compared"
    if old.audience != new.audience:
        yield f"other readers: {describe_audience(old.audience)} becomes: {describe_audience(new.audience)}"
    if old.population != new.population:
        yield f"another budget: population {old.population} becomes {new.population}"
    if describe_claim(old) != describe_claim(new):
        yield f"the claim changes from: {describe_claim(old)}"
        yield f"                    to: {describe_claim(new)}"
    before, after = _series(old), _series(new)
    if before is None or after is None:
        if before != after:
            yield "the series has no end now" if after is None else "the series has an end now"
    elif before != after:
        if old.unit == new.unit:
            change = "raises" if after > before else "lowers"
            yield f"{change} the series from {old.unit} {format_nano(before)} to {format_nano(after)}"
        else:
            yield f"the series was {old.unit} {format_nano(before)} and is {new.unit} {format_nano(after)}"
    for name in new.columns.keys() - old.columns.keys():
        yield f"column {name}: new, {_deed(new, name)}"
    for name in old.columns.keys() - new.columns.keys():
        yield f"column {name}: no longer under columns (was {_deed(old, name)})"
    for name in new.tables.keys() - old.tables.keys():
        yield f"table {name}: new, {describe_table(new.tables[name])}"
    for name in old.tables.keys() - new.tables.keys():
        yield f"table {name}: no longer released (was {describe_table(old.tables[name])})"
    forms = tuple(write_dates(json.loads(policy.canonical_json())) for policy in (old, new))
    for path, was, is_now in _changes(forms[0], forms[1], ()):
        if len(path) > 1 and path[0] == "columns" and (path[1] not in old.columns or path[1] not in new.columns):
            continue
        if path[:1] == ("tables",) and (len(path) < 2 or path[1] not in old.tables or path[1] not in new.tables):
            continue
        if len(path) == 4 and path[2:] == ("hierarchy", "rows") and isinstance(was, list) and isinstance(is_now, list):
            yield from _relabelled(f"column {path[1]}", cast(list[list[str]], was), cast(list[list[str]], is_now))
            continue
        if _is_for_readers(path):
            yield from _describe_texts(path, was, is_now)
            continue
        if len(path) == 3 and path[2] == "values" and _is_long(was) and _is_long(is_now):
            yield from _relisted(f"column {path[1]}", cast(list[Any], was), cast(list[Any], is_now))
            continue
        yield f"{'.'.join(path)}: {_write_text(was)} -> {_write_text(is_now)}"


def _series(policy: Policy) -> int | None:
    """Return what all releases of the policy together may spend, in its own definition and scope; None if they have no end."""
    if policy.every or policy.epsilon is None or not policy.adds_up:
        return None
    return policy.epsilon * len(policy.release_names)


def _deed(policy: Policy, name: str) -> str:
    column = policy.columns[name]
    return f"{column.role}, {column.do}"


def _changes(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = cast(Mapping[str, Any], old), cast(Mapping[str, Any], new)
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _changes(before.get(key), after.get(key), (*path, key))
    elif old != new:
        yield path, old, new


def _relabelled(column: str, old: list[list[str]], new: list[list[str]]) -> Iterator[str]:
    """Yield the changes in a hierarchy, value by value."""
    before, after = {row[0]: row[1:] for row in old}, {row[0]: row[1:] for row in new}
    lines = [f"{value} is new, under {' > '.join(after[value])}" for value in after if value not in before]
    lines += [f"{value} is gone" for value in before if value not in after]
    lines += [
        f"{value} moves from {' > '.join(before[value])} to {' > '.join(after[value])}"
        for value in after
        if value in before and before[value] != after[value]
    ]
    return _list_first(column, lines or ["the same rows in another order"], "hierarchy")


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(str(cast(list[Any], value))) > LONGEST


def _relisted(column: str, old: list[Any], new: list[Any]) -> Iterator[str]:
    """Yield the changes in a long list of entries."""
    before, after = set(old), set(new)
    lines = [f"{value} is new" for value in new if value not in before]
    lines += [f"{value} is gone" for value in old if value not in after]
    return _list_first(column, lines or ["the same entries in another order"], "list")


def _list_first(column: str, lines: list[str], part: str) -> Iterator[str]:
    """Yield the first few changes of a part in full, and how many more there are."""
    yield from (f"{column}: {line}" for line in lines[:SHOWN])
    if len(lines) > SHOWN:
        yield f"{column}: and {len(lines) - SHOWN:,} more changes of its {part}"


def _write_text(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        parts = {name: part for name, part in cast(dict[str, Any], value).items() if part is not None}
        return "{" + ", ".join(f"{name}: {_write_text(part)}" for name, part in parts.items()) + "}"
    if _is_long(value):
        return f"{len(value)} entries"
    if isinstance(value, list):
        return "[" + ", ".join(str(item) for item in cast(list[Any], value)) + "]"
    return str(value)
