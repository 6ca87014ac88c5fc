"""Places in a file of JSON, as papers name them, looked up."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

MISSING = object()
STEP = re.compile(r'\.?([A-Za-z_]\w*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]')


def split_place(place: str) -> list[str | int]:
    """The keys and numbers of a place; what is none is refused."""
    steps: list[str | int] = []
    at = 0
    while at < len(place):
        found = STEP.match(place, at)
        if found is None:
            return ["no place", place]
        word, number, quoted = found.groups()
        steps.append(word if word is not None else int(number) if number is not None else json.loads(quoted))
        at = found.end()
    return steps


def find_place(document: Any, place: str) -> Any:
    """What stands there; `MISSING` where nothing does."""
    found: Any = document
    for step in split_place(place):
        is_there = step in found if isinstance(found, Mapping) else isinstance(found, list) and step in range(len(found))
        if not is_there:
            return MISSING
        found = cast(Any, found)[step]
    return found


def find_place_in_schema(schema: Mapping[str, Any], place: str) -> bool:
    """Whether a document by this schema may have something there."""
    found: Any = schema
    for step in split_place(place):
        found = found.get("items") if isinstance(step, int) else found.get("properties", {}).get(step)
        if found is None:
            return False
    return True
