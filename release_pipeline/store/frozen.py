"""JSON that many share: who is handed it reads it, and changes a copy. It stays dicts and lists, as JSON has them everywhere."""

from __future__ import annotations

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


def freeze(value: Any) -> Any:
    """A value as JSON has them, every object and array in it unchangeable; what it is made of is copied where it could be
    changed."""
    if isinstance(value, dict):
        parts = cast(dict[str, Plain], value)
        return FrozenDict({name: freeze(part) if isinstance(part, (dict, list)) else part for name, part in parts.items()})
    if isinstance(value, list):
        return FrozenList(map(freeze, cast(list[Plain], value)))
    return value
