"""How the parts of a policy are declared: what there is to know of an option stands in its annotation, and one rule says which
options the canonical form leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """What there is to know of an option beside its type, its default and its docstring.

    `hint`: what a message says where the option is missing or empty; `allowed`: what may stand there, where a list of words does
    not say it all. `not_for`: why it is refused with the methods of a family,
    by the family, `{method}` standing for the method's name; `instead`: what to do then. `added_later`: policies were approved
    before it was known (`Frozen`).
    """

    hint: str = ""
    allowed: str = ""
    not_for: Mapping[str, str] = field(default_factory=dict[str, str])
    instead: str = "Remove it."
    added_later: bool = False


class Frozen(BaseModel):
    """A part of a policy: it does not change, and knows no other keys.

    The hash rule of policies, which holds for every part: the canonical form has every option, those with their default
    included, but for options that were added later. Such a one is left out where it has its default, or is an empty list or
    mapping, so that a policy that was approved before the option was known has the hash that was approved.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_serializer(mode="wrap")
    def _leave_out(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The canonical form of this part."""
        later = defaults_of_later(type(self))
        unsaid = {name for name, default in later.items() if getattr(self, name) in (default, (), {})}
        return {name: value for name, value in dump(self).items() if name not in unsaid}


def option_of(model: type[BaseModel], name: str) -> Option:
    """What is declared of an option; nothing where it has no word of its own, or is not one of this part."""
    info = model.model_fields.get(name)
    return next((part for part in info.metadata if isinstance(part, Option)), Option()) if info else Option()


@lru_cache(maxsize=256)
def defaults_of_later(model: type[BaseModel]) -> Mapping[str, Any]:
    """The options of a part that were added later, with what they are where the canonical form says nothing of them."""
    return {
        name: info.get_default(call_default_factory=True)
        for name, info in model.model_fields.items()
        if option_of(model, name).added_later
    }


def find_refused(part: BaseModel, family: str) -> dict[str, Option]:
    """The options of a part that differ from their default, and are refused with the methods of this family."""
    return {
        name: option
        for name, info in type(part).model_fields.items()
        if family in (option := option_of(type(part), name)).not_for
        and getattr(part, name) not in (info.get_default(call_default_factory=True), (), {})
    }
