"""How the parts of a policy are declared: what there is to know of an option stands in its annotation, and one rule says which
options the canonical form leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Option:
    """What there is to know of an option beside its type, its default and its docstring.

    `hint`: what a message says where the option is missing or empty; `allowed`: what may stand there, where a list of words does
    not say it all. `not_for`: why it is refused with the methods of a family,
    by the family, `{method}` standing for the method's name; `instead`: what to do then.
    """

    hint: str = ""
    allowed: str = ""
    not_for: Mapping[str, str] = field(default_factory=dict[str, str])
    instead: str = "Remove it."


class Frozen(BaseModel):
    """A part of a policy: it does not change, and knows no other keys.

    The canonical form, which the hash of a policy is of, has every option but those that are empty (none, no
    entries). So an option that a later version adds changes no hash, as long as it is empty by default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    @model_serializer(mode="wrap")
    def _leave_out(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The canonical form of this part."""
        return {name: value for name, value in dump(self).items() if value not in (None, [], (), {})}


def option_of(model: type[BaseModel], name: str) -> Option:
    """What is declared of an option; nothing where it has no word of its own, or is not one of this part."""
    info = model.model_fields.get(name)
    return next((part for part in info.metadata if isinstance(part, Option)), Option()) if info else Option()


def find_refused(part: BaseModel, family: str) -> dict[str, Option]:
    """The options of a part that differ from their default, and are refused with the methods of this family."""
    return {
        name: option
        for name, info in type(part).model_fields.items()
        if family in (option := option_of(type(part), name)).not_for
        and getattr(part, name) not in (info.get_default(call_default_factory=True), (), {})
    }
