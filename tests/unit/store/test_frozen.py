"""JSON that is shared: it reads as any, and nothing in it can be changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import pytest

from release_pipeline.store.frozen import freeze

TEXT = '{"a":[1,[{"b":[]}],{"c":{}}],"a":[2,[{"b":[3]}],{"c":{"d":null}}],"word":"é"}'
CHANGES = {  # what changes a dict or a list, by the library's own account
    dict: {*dir(MutableMapping), "__ior__"} & set(dir(dict)) - set(dir(Mapping)),
    list: {*dir(MutableSequence), "__imul__", "sort"} & set(dir(list)) - set(dir(Sequence)),
}
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("clear", "popitem", "reverse", "sort", "update"), ()),
    **dict.fromkeys(("__setitem__", "insert"), (0, 0)),
    **dict.fromkeys(("__iadd__", "extend"), ([4],)),
    "__ior__": ({"a": 0},),
    "setdefault": ("new", 0),
}


def _parts(value: Any) -> list[Any]:
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return [] if inside is None else [value, *(part for one in inside for part in _parts(one))]


@pytest.mark.parametrize(("kind", "number"), [(dict, 4), (list, 3)])
def test_nothing_in_it_can_be_changed(kind: type[Any], number: int) -> None:
    whole = freeze(json.loads(TEXT))
    parts = [part for part in _parts(whole) if isinstance(part, kind)]
    assert len(parts) == number
    assert {"dict": "update", "list": "append"}[kind.__name__] in CHANGES[kind]
    for part in parts:
        for name in CHANGES[kind]:
            with pytest.raises(TypeError, match="change a copy"):
                getattr(part, name)(*ARGUMENTS.get(name, (0,)))
    assert whole == json.loads(TEXT)


def test_what_it_was_made_of_is_left_alone() -> None:
    """Who has that may go on changing it, and it shows nowhere."""
    plain = json.loads(TEXT)
    whole = freeze(plain)
    plain["a"][1][0]["b"].append(4)
    assert whole == json.loads(TEXT)
