"""JSON that several readers share: a dict or list that refuses every change."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from release_pipeline.policy.documents import Plain


def _refuse(self: object, *_: Any, **__: Any) -> NoReturn:
    raise TypeError("this is shared with everybody who reads it: change a copy")


class FrozenDict(dict[str, Any]):
    """A dict that refuses every change."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[Any]):
    """A list that refuses every change."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


def freeze(value: Any) -> Any:
    """Return a copy of a JSON value in which every object and array refuses changes."""
    if isinstance(value, dict):
        return FrozenDict({name: freeze(part) for name, part in cast(dict[str, Plain], value).items()})
    if isinstance(value, list):
        return FrozenList(map(freeze, cast(list[Plain], value)))
    return value
