"""What changes in what readers are told of data and columns, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias, cast

Path: TypeAlias = tuple[str, ...]
_OF_COLUMN = ("label", "description", "unit", "question")
_PARTS = {"licence": "the licence", "publisher": "the publisher", "contact": "the contact", "citation": "how to cite the data"}


def is_told(path: Path) -> bool:
    """Whether a change is one of what readers are told."""
    return path[:1] == ("about",) or (path[:1] == ("columns",) and path[2:3] in [(part,) for part in (*_OF_COLUMN, "labels")])


def describe_told(path: Path, was: Any, is_now: Any) -> Iterator[str]:
    """The change in words: of a mapping that is new or gone, of each of its parts."""
    if isinstance(was, Mapping) or isinstance(is_now, Mapping):
        before = cast(Mapping[str, Any], was or {})
        after = cast(Mapping[str, Any], is_now or {})
        for key in [*before, *(key for key in after if key not in before)]:
            if before.get(key) != after.get(key):
                yield from describe_told((*path, key), before.get(key), after.get(key))
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
        return ", ".join(_text(one) for one in cast(list[Any], value))
    if isinstance(value, Mapping):
        return " ".join(_text(one) for one in cast(Mapping[str, Any], value).values() if one is not None)
    return str(value)
