"""JSON that many share: who is handed it reads it, and changes a copy. It stays dicts and lists, as JSON has them everywhere."""

from __future__ import annotations

import json
from typing import Any, NoReturn, cast

from release_pipeline.policy.typed import Plain


def _refuse(self: object, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("this is shared with everybody who reads it: change a copy")


class FrozenDict(dict[str, Any]):
    """A dict that nobody changes."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list that nobody changes."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def parse_frozen(text: str) -> Any:
    """The value of a JSON text, every object and array in it unchangeable."""
    return _freeze(_DECODER.decode(text))


def _freeze_object(pairs: list[tuple[str, Any]]) -> FrozenDict:
    """Objects inside are frozen already, where they were parsed; few have arrays."""
    frozen = FrozenDict(pairs)
    for name, value in frozen.items():
        if isinstance(value, list):
            dict[str, Any].__setitem__(frozen, name, _freeze(cast(Plain, value)))
    return frozen


def _freeze(value: Plain) -> Plain:
    if not isinstance(value, list):
        return value
    nested = any(isinstance(part, list) for part in value)
    return FrozenList(map(_freeze, value) if nested else value)


_DECODER = json.JSONDecoder(object_pairs_hook=_freeze_object)
